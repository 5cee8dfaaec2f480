import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

interface OpenApi {
  readonly paths: Readonly<
    Record<
      string,
      {
        readonly get: {
          readonly parameters: readonly Parameter[];
          readonly responses: Readonly<Record<string, Response | { readonly $ref: string }>>;
        };
      }
    >
  >;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly responses: Readonly<Record<string, Response>>;
  };
}

interface Response {
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
  readonly headers?: Readonly<Record<string, object>>;
}

/** Returns checks of values and answers against an OpenAPI document. */
export function readOpenApi(document: unknown) {
  const { paths, components } = document as OpenApi;
  const ajv = new Ajv2020({ strict: true, validateFormats: false, allowUnionTypes: true });
  // The schemas may allow more fields, but each field in an answer must be documented.
  for (const [name, schema] of Object.entries(components.schemas)) {
    ajv.addSchema(closed(schema), name);
  }
  const validators = new Map<object, ValidateFunction>();
  const validator = (schema: object) => {
    const known = validators.get(schema);
    if (known !== undefined) return known;
    const text = JSON.stringify(closed(schema)).replaceAll('#/components/schemas/', '');
    const compiled = ajv.compile(JSON.parse(text) as object);
    validators.set(schema, compiled);
    return compiled;
  };
  const named = new Map(
    Object.keys(components.schemas).map((name) => [name, { $ref: `#/components/schemas/${name}` }]),
  );
  const faults = (schema: object, value: unknown): readonly string[] => {
    const validate = validator(schema);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  };

  function responseOf(path: string, status: number): Response | undefined {
    const response = paths[path]?.get.responses[status];
    if (response === undefined || !('$ref' in response)) return response;
    return components.responses[response.$ref.split('/').at(-1) ?? ''];
  }

  return {
    paths: Object.keys(paths),
    schemas: Object.keys(components.schemas),
    parametersOf: (path: string, place: Parameter['in']) =>
      (paths[path]?.get.parameters ?? []).filter((each) => each.in === place),
    /** Returns the faults of a value that should match a named schema. */
    faultsOf: (schema: string, value: unknown) => faults(named.get(schema) ?? {}, value),
    accepts: ({ schema }: Parameter, value: unknown) => validator(schema)(value),
    /** Returns the faults of an answer; none if it matches the document. */
    faultsOfAnswer: async (
      path: string,
      answer: globalThis.Response,
    ): Promise<readonly string[]> => {
      const { status, headers } = answer;
      const response =
        responseOf(path, status) ?? (status === 405 ? components.responses[405] : undefined);
      if (response === undefined) return [`${status} is not documented`];
      const missing = Object.keys(response.headers ?? {}).filter((name) => !headers.has(name));
      const [type = '', content] = Object.entries(response.content ?? {})[0] ?? [];
      const body = await answer.text();
      const wrong =
        content === undefined
          ? body === ''
            ? []
            : ['it has a body']
          : [
              ...(headers.get('content-type')?.startsWith(type) ? [] : [`it is no ${type}`]),
              ...faults(content.schema, JSON.parse(body)),
            ];
      return [...missing.map((name) => `it lacks ${name}`), ...wrong];
    },
  };
}

/** Returns a copy of a schema that forbids further fields. */
function closed(schema: object): object {
  return JSON.parse(JSON.stringify(schema), (_key, value: unknown) =>
    typeof value === 'object' && value !== null && 'properties' in value
      ? { ...value, additionalProperties: false }
      : value,
  ) as object;
}
