import { z } from 'zod';
import { fileSchema } from './schema.ts';
import { API_KEY_OPTIONS, POSTGRES_URL_OPTIONS } from './secret-options.ts';

const API_KEY = API_KEY_OPTIONS.map((name) => ({ required: [name] }));
const POSTGRES = POSTGRES_URL_OPTIONS.map((name) => ({ required: [name] }));
const TWO_STORES = [
  { required: [...POSTGRES_URL_OPTIONS] },
  { required: ['path'], anyOf: POSTGRES },
];

/**
 * Returns the JSON Schema (draft 2020-12) of the configuration file, for editors. It describes shape, defaults, ranges
 * and key sources. Time zones, cron expressions, files and plain HTTP are checked only by the program.
 */
export function configJsonSchema(): object {
  const { properties = {}, ...schema } = z.toJSONSchema(fileSchema, {
    target: 'draft-2020-12',
    io: 'input',
    override: ({ jsonSchema }) => {
      const { properties: options = {} } = jsonSchema;
      if ('api_key_env' in options) {
        jsonSchema.not = { required: [...API_KEY_OPTIONS] };
      }
      if ('postgres_url_env' in options) {
        // An empty section is null, which has every required key.
        jsonSchema.not = { type: 'object', anyOf: TWO_STORES };
        jsonSchema.dependentSchemas = { lease: { anyOf: POSTGRES } };
      }
      if ('url_env' in options) jsonSchema.maxProperties = 1;
    },
  });
  return {
    ...schema,
    title: 'evalwatch configuration',
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, section]) => [name, allowEmpty(section)]),
    ),
    anyOf: [
      { properties: { service: { anyOf: API_KEY } } },
      { properties: { projects: { items: { anyOf: API_KEY } } } },
    ],
  };
}

/** Lets a section be empty if all of its options have defaults. */
function allowEmpty(
  section: z.core.JSONSchema._JSONSchema,
): z.core.JSONSchema._JSONSchema | object {
  return typeof section === 'object' && section.type === 'object' && section.required === undefined
    ? { ...section, type: ['object', 'null'] }
    : section;
}
