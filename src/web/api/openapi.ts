import { z } from 'zod';
import { PATHS } from '../paths.ts';
import { operations, schemas } from './operations.ts';

const DESCRIPTION = `What evalwatch knows, as JSON. HEAD is GET without a body; other methods are answered 405, unknown paths 404, both as JSON. A parameter that is unknown, empty or given twice is answered 400. Later versions may add fields; those that are here stay.`;
const EVENTS = `Server-sent events: \`transition\` (its data a Transition), \`failure\` (a Failure, once its error_info was had or given up), \`poll\` (a Poll) and \`reset\` (a Reset). Transitions and failures come in the order in which they were recorded, a failure after its transition, each with an id after which another stream goes on: nothing is left out and nothing comes twice, whatever was restarted in between. Polls are told while they happen and never again.`;

const VALIDATORS = {
  ETag: { description: 'For `If-None-Match`.', schema: { type: 'string' } },
  'Cache-Control': { schema: { const: 'no-cache' } },
};
const IF_NONE_MATCH = header(
  'If-None-Match',
  'ETags of earlier answers: 304 if one is still right.',
);
const LAST_EVENT_ID = header('Last-Event-ID', 'Go on after the event of this id.');

/** The OpenAPI document of `/api/v1`, made of what the API reads its parameters by. */
export function openApiDocument(): object {
  const paths = Object.entries(operations).map(([path, operation]) => [
    path,
    { get: { operationId: path.slice(1), ...describe(operation) } },
  ]);
  return {
    openapi: '3.1.1',
    info: { title: 'evalwatch', version: '1', description: DESCRIPTION },
    servers: [{ url: PATHS.api }],
    paths: Object.fromEntries(paths),
    components: {
      schemas: Object.fromEntries(
        Object.entries(schemas).map(([name, schema]) => [name, jsonSchema(schema, 'input')]),
      ),
      responses: {
        304: { description: 'What `If-None-Match` names is still right.', headers: VALIDATORS },
        400: error('A parameter is bad.'),
        404: error('The project is unknown, or there is nothing at this path.'),
        405: error('The method is neither GET nor HEAD.'),
        421: error('No login is needed, and the `Host` is not a name of this server.'),
        503: error('The store cannot be read, or too much is asked for at the same time.'),
      },
    },
  };
}

function describe(operation: (typeof operations)[keyof typeof operations]): object {
  const { summary, gives } = operation;
  const query = Object.entries<z.ZodType>(operation.parameters.shape).map(([name, schema]) => {
    const { description, ...rest } = jsonSchema(schema, 'output');
    return { name, in: 'query', description, schema: rest };
  });
  const faults = common(400, ...('project' in operation.parameters.shape ? [404] : []), 421, 503);
  if (gives === 'stream') {
    return {
      summary,
      description: EVENTS,
      parameters: [...query, LAST_EVENT_ID],
      responses: {
        200: {
          description: 'The events, for as long as the client stays.',
          content: { 'text/event-stream': { schema: { type: 'string' } } },
        },
        ...faults,
      },
    };
  }
  const schema = gives === 'document' ? { type: 'object' } : pageOf(gives);
  return {
    summary,
    parameters: [...query, IF_NONE_MATCH],
    responses: {
      200: {
        description: 'What was asked for.',
        headers: VALIDATORS,
        content: { 'application/json': { schema } },
      },
      ...common(304),
      ...faults,
    },
  };
}

function pageOf(rows: keyof typeof schemas): object {
  return {
    type: 'object',
    required: ['data', 'next_cursor'],
    properties: {
      data: { type: 'array', items: { $ref: `#/components/schemas/${rows}` } },
      next_cursor: {
        type: ['string', 'null'],
        description: 'The `cursor` of the next rows; null if there are none.',
      },
    },
  };
}

function error(description: string): object {
  const schema = { $ref: '#/components/schemas/Error' };
  return { description, content: { 'application/json': { schema } } };
}

function common(...codes: readonly number[]): object {
  return Object.fromEntries(
    codes.map((code) => [code, { $ref: `#/components/responses/${code}` }]),
  );
}

function header(name: string, description: string): object {
  return { name, in: 'header', description, schema: { type: 'string' } };
}

/** Of an input, fields that later versions add are no fault. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): z.core.JSONSchema.JSONSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { target: 'draft-2020-12', io });
  return rest;
}
