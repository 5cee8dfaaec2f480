import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, it } from 'vitest';
import { configJsonSchema } from '../../../src/config/json-schema.ts';

const schema = configJsonSchema();

it('config/evalwatch.schema.json equals the generated JSON schema', () => {
  const file = join(import.meta.dirname, '../../../config/evalwatch.schema.json');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(schema);
});

it('the JSON schema names its draft and rejects unknown keys', () => {
  expect(schema).toMatchObject({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    required: ['service', 'projects'],
    additionalProperties: false,
    properties: {
      service: { required: ['base_url'], additionalProperties: false },
      projects: { minItems: 1, items: { required: ['id'], additionalProperties: false } },
    },
  });
});

it('the JSON schema accepts empty sections that have defaults', () => {
  expect(schema).toMatchObject({
    properties: {
      service: { type: 'object' },
      store: { type: ['object', 'null'] },
      web: { type: ['object', 'null'] },
      log: { type: ['object', 'null'] },
    },
  });
});

it('the JSON schema requires a key source per project and rejects two in one place', () => {
  const both = { required: ['api_key_file', 'api_key_env'] };
  const one = [{ required: ['api_key_file'] }, { required: ['api_key_env'] }];
  expect(schema).toMatchObject({
    properties: { service: { not: both }, projects: { items: { not: both } } },
    anyOf: [
      { properties: { service: { anyOf: one } } },
      { properties: { projects: { items: { anyOf: one } } } },
    ],
  });
});

it('the JSON schema describes durations, sizes, ranges, log levels and defaults', () => {
  expect(schema).toMatchObject({
    properties: {
      service: {
        properties: {
          timeout: { type: 'string', default: '10s', pattern: expect.stringContaining('ms') },
          max_response_size: { default: '64MiB', pattern: expect.stringContaining('MiB') },
          retries: { type: 'integer', minimum: 0, maximum: 10, default: 3 },
          max_requests_per_second: { type: 'number', minimum: 0, maximum: 10_000, default: 10 },
        },
      },
      log: { properties: { level: { enum: ['debug', 'info', 'warn', 'error'] } } },
    },
  });
});

it.each([
  [{}, true],
  [{ path: 'a.db' }, true],
  [{ postgres_url_file: 'url', lease: '10s' }, true],
  [{ postgres_url_env: 'URL' }, true],
  [{ postgres_url_file: 'url', postgres_url_env: 'URL' }, false],
  [{ path: 'a.db', postgres_url_env: 'URL' }, false],
  [{ lease: '10s' }, false],
])('the JSON schema accepts the store %j: %s', (store, isGood) => {
  const validate = new Ajv2020({ strict: false }).compile(schema);
  const service = { base_url: 'https://evaluation.example.com', api_key_file: 'key' };
  expect(validate({ service, projects: [{ id: 'a' }], store })).toBe(isGood);
});

it.each([
  [{}, true],
  [{ url: 'https://hc-ping.com/secret?rid=1' }, true],
  [{ url_file: 'heartbeat' }, true],
  [{ url: 'hc-ping.com/secret' }, false],
  [{ url: 'https://user:secret@hc-ping.com/' }, false],
  [{ url: 'https://hc-ping.com/secret', url_env: 'HEARTBEAT' }, false],
])('the JSON schema accepts the heartbeat %j: %s', (heartbeat, isGood) => {
  const validate = new Ajv2020({ strict: false }).compile(schema);
  const service = { base_url: 'https://evaluation.example.com', api_key_file: 'key' };
  expect(validate({ service, projects: [{ id: 'a' }], heartbeat })).toBe(isGood);
});
