import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, it } from 'vitest';
import { configJsonSchema } from '../../../src/config/json-schema.ts';

const schema = configJsonSchema();
const validate = new Ajv2020({ strict: false }).compile(schema);

it('config/evalwatch.schema.json equals the generated JSON schema', () => {
  const file = join(import.meta.dirname, '../../../config/evalwatch.schema.json');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(schema);
});

const service = { base_url: 'https://evaluation.example.com', api_key_file: 'key' };
const { api_key_file: _, ...keyless } = service;
const projects = [{ id: 'a' }];
const both = { api_key_file: 'key', api_key_env: 'KEY' };

it.each([
  [{}, true],
  [{ store: null, web: null, log: null }, true],
  [{ colour: 'blue' }, false],
  [{ service: undefined }, false],
  [{ service: null }, false],
  [{ service: { api_key_file: 'key' } }, false],
  [{ service: { ...service, colour: 'blue' } }, false],
  [{ service: { ...service, ...both } }, false],
  [{ service: keyless }, false],
  [{ service: keyless, projects: [{ id: 'a', api_key_env: 'KEY' }] }, true],
  [{ projects: undefined }, false],
  [{ projects: [] }, false],
  [{ projects: [{}] }, false],
  [{ projects: [{ id: 'a', colour: 'blue' }] }, false],
  [{ projects: [{ id: 'a', ...both }] }, false],
  [{ service: { ...service, timeout: '1m30s', max_response_size: '64MiB', retries: 10 } }, true],
  [{ service: { ...service, timeout: '90' } }, false],
  [{ service: { ...service, timeout: 90 } }, false],
  [{ service: { ...service, max_response_size: '64MB' } }, false],
  [{ service: { ...service, retries: 11 } }, false],
  [{ service: { ...service, retries: 1.5 } }, false],
  [{ service: { ...service, max_requests_per_second: -0.5 } }, false],
  [{ service: { ...service, max_requests_per_second: 0.5 } }, true],
  [{ metrics: { experiments: 100 } }, true],
  [{ metrics: { experiments: 101 } }, false],
  [{ log: { level: 'warn' } }, true],
  [{ log: { level: 'warning' } }, false],
  [{ store: {} }, true],
  [{ store: { path: 'a.db' } }, true],
  [{ store: { postgres_url_file: 'url', lease: '10s' } }, true],
  [{ store: { postgres_url_env: 'URL' } }, true],
  [{ store: { postgres_url_file: 'url', postgres_url_env: 'URL' } }, false],
  [{ store: { path: 'a.db', postgres_url_env: 'URL' } }, false],
  [{ store: { lease: '10s' } }, false],
  [{ heartbeat: {} }, true],
  [{ heartbeat: { url: 'https://hc-ping.com/secret?rid=1' } }, true],
  [{ heartbeat: { url_file: 'heartbeat' } }, true],
  [{ heartbeat: { url: 'hc-ping.com/secret' } }, false],
  [{ heartbeat: { url: 'https://user:secret@hc-ping.com/' } }, false],
  [{ heartbeat: { url: 'https://hc-ping.com/secret', url_file: 'heartbeat' } }, false],
  [{ notify: null }, true],
  [{ notify: [{ name: 'a', type: 'slack', url_file: 'a' }] }, true],
  [{ notify: [{ name: 'a', type: 'slack' }] }, false],
  [{ notify: [{ name: 'a', type: 'slack', url: 'https://hooks.slack.com/secret' }] }, false],
  [{ notify: [{ name: 'a', type: 'webhook', url: 'https://a', secret_env: 'S' }] }, true],
  [{ notify: [{ name: 'a', type: 'webhook', url: 'https://a', url_env: 'S' }] }, false],
  [{ notify: [{ name: 'a', type: 'email', smtp_url_env: 'S', from: 'a@b', to: ['a@b'] }] }, true],
  [{ notify: [{ name: 'a', type: 'email', smtp_url_env: 'S', from: 'a@b', to: ['a'] }] }, false],
  [{ notify: [{ name: 'a', type: 'email', smtp_url_env: 'S', from: 'a@b' }] }, false],
])('the JSON schema accepts a configuration with %j: %s', (more, isGood) => {
  const text = JSON.stringify({ service, projects, ...more });
  expect(validate(JSON.parse(text))).toBe(isGood);
});
