import { z } from 'zod';
import { fileSchema } from '../src/config/schema.ts';

/**
 * Returns the JSON Schema (draft 2020-12) of the configuration file, for editors. It describes shape, defaults and ranges. Rules
 * for several options together, time zones, cron expressions and files are checked only by the program.
 */
export function configJsonSchema(): object {
  const {
    properties = {},
    required = [],
    ...schema
  } = z.toJSONSchema(fileSchema, { target: 'draft-2020-12', io: 'input' });
  return {
    ...schema,
    title: 'evalwatch configuration',
    // Projects may be in other files.
    required: required.filter((name) => name !== 'projects'),
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, section]) => [name, allowEmpty(section)]),
    ),
  };
}

/** Lets a section be empty if all of its options have defaults, or if it is a list that can be empty. */
function allowEmpty(
  section: z.core.JSONSchema._JSONSchema,
): z.core.JSONSchema._JSONSchema | object {
  const isOptional =
    typeof section === 'object' &&
    (section.type === 'object' ? section.required === undefined : section.default !== undefined);
  if (!isOptional || (section.type !== 'object' && section.type !== 'array')) return section;
  return { ...section, type: [section.type, 'null'] };
}
