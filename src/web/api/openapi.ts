import { z } from 'zod';
import { PATHS } from '../paths.ts';
import { operations, pathParameters, schemas } from './operations.ts';

const DESCRIPTION = `The state of evalwatch as JSON. HEAD answers like GET, without a body. Other methods get 405 and unknown paths 404, both as JSON. A parameter that is unknown or given twice gets 400, and so does an empty one that means nothing. Later versions may add fields; existing fields do not change.`;
const EVENTS = `Server-sent events: \`transition\` (its data is a Transition), \`failure\` (a Failure, when its error_info is fetched or evalwatch stops trying), \`poll\` (a Poll) and \`reset\` (a Reset). Transitions and failures come in the order in which they were recorded, a failure after its transition. Each has an id from which another stream can resume: no event is skipped or repeated, even if evalwatch or the client restarts in between. A poll is sent when it finishes, and never again.`;

const VALIDATORS = {
  ETag: { description: 'For `If-None-Match`.', schema: { type: 'string' } },
  'Cache-Control': { schema: { const: 'no-cache' } },
};
const IF_NONE_MATCH = header(
  'If-None-Match',
  'ETags of earlier answers; the answer is 304 if one is current.',
);
const LAST_EVENT_ID = header('Last-Event-ID', 'Continues after the event with this id.');

/** Returns the OpenAPI document of `/api/v1`, made from the table that the API parses its parameters by. */
export function openApiDocument(): object {
  const paths = Object.entries(operations).map(([path, operation]) => [
    path,
    { get: describe(path, operation) },
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
        304: { description: 'An ETag in `If-None-Match` is current.', headers: VALIDATORS },
        400: error('A parameter is invalid.'),
        404: error('The project or the prompt is unknown, or there is nothing at this path.'),
        405: error('The method is neither GET nor HEAD.'),
        421: error(
          'The server requires neither TLS nor a login, and `Host` is not a known name of it.',
        ),
        503: error('The store cannot be read, or there are too many requests at the same time.'),
      },
    },
  };
}

function describe(path: string, operation: (typeof operations)[keyof typeof operations]): object {
  const { summary, gives } = operation;
  const inPath = Object.entries(pathParameters)
    .filter(([name]) => path.includes(`{${name}}`))
    .map(([name, description]) => {
      return { name, in: 'path', required: true, description, schema: { type: 'string' } };
    });
  const isRow = inPath.length > 0;
  const query = Object.entries<z.ZodType>(operation.parameters.shape).map(([name, schema]) => {
    const { description, ...rest } = jsonSchema(schema, 'output');
    return { name, in: 'query', description, schema: rest };
  });
  const namesProject = isRow || 'project' in operation.parameters.shape;
  const faults = common(400, ...(namesProject ? [404] : []), 421, 503);
  if (gives === 'stream') {
    return {
      operationId: path.slice(1),
      summary,
      description: EVENTS,
      parameters: [...query, LAST_EVENT_ID],
      responses: {
        200: {
          description: 'The events, until the client disconnects.',
          content: { 'text/event-stream': { schema: { type: 'string' } } },
        },
        ...faults,
      },
    };
  }
  const schema = gives === 'document' ? { type: 'object' } : isRow ? rowOf(gives) : pageOf(gives);
  return {
    operationId: isRow ? gives.toLowerCase() : path.slice(1),
    summary,
    parameters: [...inPath, ...query, IF_NONE_MATCH],
    responses: {
      200: {
        description: 'The requested rows or document.',
        headers: VALIDATORS,
        content: { 'application/json': { schema } },
      },
      ...common(304),
      ...faults,
    },
  };
}

function rowOf(row: keyof typeof schemas): object {
  const data = { $ref: `#/components/schemas/${row}` };
  return { type: 'object', required: ['data'], properties: { data } };
}

function pageOf(rows: keyof typeof schemas): object {
  return {
    type: 'object',
    required: ['data', 'next_cursor'],
    properties: {
      data: { type: 'array', items: { $ref: `#/components/schemas/${rows}` } },
      next_cursor: {
        type: ['string', 'null'],
        description: 'The `cursor` of the next rows; null on the last page.',
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

/** Converts a schema. As `input` it allows additional fields, which later versions may add. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): z.core.JSONSchema.JSONSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { target: 'draft-2020-12', io });
  return rest;
}
