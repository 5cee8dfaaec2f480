import { rootCertificates } from 'node:tls';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inForce } from '../../../src/config/in-force.ts';
import { OPTIONS } from '../../../src/config/schema.ts';
import { loadText, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();
writeFileSync(join(directory, 'ca.pem'), rootCertificates[0] ?? '');

const WITH_SQLITE = `
service:
  base_url: https://evaluation.example.com/v2
  api_key_file: key
  timeout: 90s
  max_response_size: 1536KiB
  ca_file: ca.pem
  proxy_url: http://proxy.example.com:3128
  prompt_url: https://evaluation.example.com/p/{prompt_id}
jitter: 5s
projects:
  - id: plain
  - id: own
    schedule: "0 */5 * * * *"
    timezone: Asia/Tokyo
    api_key_env: OWN_KEY
    datasets: true
    team: search
    expect: { max_pending: 90m, max_running: off, max_failure_ratio: off }
web: { listen: "[::1]:80", external_url: https://evalwatch.example.com }
heartbeat: { url_file: beat }
notify:
  - { name: chat, type: slack, url_file: chat, on: [failed], teams: [search] }
  - { name: hook, type: webhook, url_env: HOOK, secret_file: secret, projects: [own] }
  - { name: mail, type: email, smtp_url_file: smtp, from: a@example.com, to: [b@example.com] }
`;
const WITH_POSTGRES = `
service: { base_url: http://evaluation.example.com, allow_http: true, api_key_env: KEY }
projects: [{ id: a, paused: true }]
maintenance: [{ cron: '0 2 * * 0', duration: 4h, polls: continue }]
idle_schedule: '0 * * * *'
metrics: { experiments: 20 }
web: { config_file: web.yaml, allowed_hosts: [a.example.com] }
store: { postgres_url_env: DATABASE, lease: 30s, retention: 30d }
`;

describe('the configuration in force', () => {
  it.each([WITH_SQLITE, WITH_POSTGRES])('is read as the same configuration', async (text) => {
    const env = {
      KEY: 'k'.repeat(20),
      OWN_KEY: 'o'.repeat(20),
      DATABASE: 'postgres://db/e',
      HOOK: 'h',
    };
    const config = await loadText(directory, text, { env });
    const again = await loadText(directory, JSON.stringify(inForce(config)), { env });
    const withoutFiles = (whole: object) =>
      // The directory of the test can look like a key.
      JSON.parse(JSON.stringify({ ...whole, sources: [] }).replaceAll(',"couldBeKey":true', ''));
    expect(withoutFiles(again)).toEqual(withoutFiles(config));
  });

  it('has every option', async () => {
    const env = { KEY: 'k'.repeat(20), OWN_KEY: 'o'.repeat(20), DATABASE: 'd', HOOK: 'h' };
    const files = [WITH_SQLITE, WITH_POSTGRES].map((text) => loadText(directory, text, { env }));
    // Of a secret, either its file or its variable is shown.
    const nameOf = (option: string) => option.replace(/_(?:file|env)$/, '');
    const names = new Set<string>();
    JSON.stringify((await Promise.all(files)).map(inForce), (key, value: unknown) => {
      if (value !== undefined) names.add(nameOf(key));
      return value;
    });
    const options = Object.values(OPTIONS.keys).flat().map(nameOf);
    expect(options.filter((option) => !names.has(option))).toEqual([]);
  });

  it('has every default and no secret', async () => {
    const text = `
service:
  base_url: https://evaluation.example.com
  api_key_file: 8b1a9953c4611296a827abf8c47804d7
  proxy_url: http://us%40er:5ec2e7@proxy.example.com
projects: [{ id: a }]
heartbeat: { url: https://hc.example.com/5ec2e7 }
notify: [{ name: hook, type: webhook, url: https://hook.example.com/5ec2e7 }]`;
    const shown = inForce(await loadText(directory, text));
    expect(shown).toMatchObject({
      service: {
        timeout: '10s',
        max_response_size: '64MiB',
        retries: 3,
        proxy_url: '[redacted]',
      },
      projects: [
        {
          id: 'a',
          api_key_file: '[redacted]',
          expect: { max_pending: 'auto', max_running: 'auto', max_failure_ratio: 0.2 },
        },
      ],
      heartbeat: { url: '[redacted]' },
      notify: [{ url: '[redacted]', on: ['failed', 'stuck', 'down'] }],
    });
    expect(JSON.stringify(shown)).not.toMatch(/5ec2e7|8b1a9953/);
  });
});
