import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, it } from 'vitest';
import { configJsonSchema } from '../../../scripts/configuration-schema.ts';

const validate = new Ajv2020({ strict: false }).compile(configJsonSchema());

const service = { base_url: 'https://evaluation.example.com', api_key_file: 'key' };
const projects = [{ id: 'a' }];

it.each([
  [{}, true],
  [{ store: null, web: null, log: null }, true],
  [{ colour: 'blue' }, false],
  [{ service: undefined }, false],
  [{ service: null }, false],
  [{ service: { api_key_file: 'key' } }, false],
  [{ service: { ...service, colour: 'blue' } }, false],
  [{ projects: [] }, false],
  [{ projects: [{}] }, false],
  [{ projects: [{ id: 'a', colour: 'blue' }] }, false],
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
  [{ heartbeat: {} }, true],
  [{ heartbeat: { url: 'https://hc-ping.com/secret?rid=1' } }, true],
  [{ heartbeat: { url_file: 'heartbeat' } }, true],
  [{ heartbeat: { url: 'hc-ping.com/secret' } }, false],
  [{ heartbeat: { url: 'https://user:secret@hc-ping.com/' } }, false],
  [{ notify: null }, true],
  [{ notify: [{ name: 'a', type: 'slack', url_file: 'a' }] }, true],
  [{ notify: [{ name: 'a', type: 'webhook', url: 'https://a', secret_env: 'S' }] }, true],
  [{ notify: [{ name: 'a', type: 'email', smtp_url_env: 'S', from: 'a@b', to: ['a@b'] }] }, true],
  [{ notify: [{ name: 'a', type: 'email', smtp_url_env: 'S', from: 'a@b', to: ['a'] }] }, false],
])('the JSON schema accepts a configuration with %j: %s', (more, isGood) => {
  const text = JSON.stringify({ service, projects, ...more });
  expect(validate(JSON.parse(text))).toBe(isGood);
});
