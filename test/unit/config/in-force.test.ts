import { rootCertificates } from 'node:tls';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { inForce } from '../../../src/config/in-force.ts';
import { OPTIONS } from '../../../src/config/schema.ts';
import { loadText, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();
writeFileSync(join(directory, 'ca.pem'), rootCertificates[0] ?? '');

const WITH_SQLITE = `
service:
  base_url: http://evaluation.example.com/v2
  allow_http: true
  timeout: 1m30s
  retries: 0
  max_concurrency: 1
  max_requests_per_second: 0.5
  max_response_size: 1536KiB
  max_items: 500
  ca_file: ${join(directory, 'ca.pem')}
  proxy_url: http://proxy.example.com:3128/
  prompt_url: https://evaluation.example.com/p/{prompt_id}
jitter: 5s
missing_after: 1
projects_files: [${join(directory, '*.list')}]
projects:
  - { id: plain, api_key_file: /keys/plain, datasets: false, paused: false }
  - id: own
    schedule: "0 */5 * * * *"
    timezone: Asia/Tokyo
    api_key_env: OWN_KEY
    datasets: true
    team: search.ranking_2-b
    expect: { max_pending: 1h30m, max_running: off, max_failure_ratio: off }
store: { path: /var/lib/evalwatch.db, retention: 30d }
web:
  listen: "[::1]:80"
  allowed_hosts: [a.example.com, evalwatch.example.com]
  external_url: https://evalwatch.example.com
  enable_lifecycle: true
log: { level: debug }
heartbeat: { url_file: /keys/beat }
notify:
  - { name: chat, type: slack, url_file: /keys/chat, on: [failed], teams: [search.ranking_2-b] }
  - { name: hook, type: webhook, url_env: HOOK, secret_file: /keys/secret, projects: [own] }
  - { name: b, type: teams, url_env: HOOK, on: [completed, finished] }
  - { name: c, type: webhook, url_file: /url, secret_env: HOOK }
  - { name: mail, type: email, smtp_url_file: /smtp, from: a@example.com, to: [b@example.com] }
`;
const WITH_POSTGRES = `
service: { base_url: https://evaluation.example.com }
projects:
  - id: a
    api_key_env: KEY
    paused: true
    idle_schedule: '0 * * * *'
    maintenance: [{ cron: '0 2 * * 0', timezone: Asia/Tokyo, duration: 4h, polls: continue }]
metrics: { experiments: 20 }
web: { config_file: /web.yaml }
store: { postgres_url_env: DATABASE, lease: 30s, retention: 90d }
`;
const FOR_ALL = `
schedule: '0 * * * *'
idle_schedule: '0 0 * * *'
timezone: europe/berlin
expect: { max_running: 2h, max_failure_ratio: 0 }
maintenance: [{ cron: '0 1 * * *', duration: 1h }]
`;

describe('the configuration in force', () => {
  it.each([WITH_SQLITE, WITH_POSTGRES])(
    'is that of the file, and can be its file',
    async (text) => {
      const env = {
        KEY: 'k'.repeat(20),
        OWN_KEY: 'o'.repeat(20),
        DATABASE: 'postgres://db/e',
        HOOK: 'h',
      };
      const config = await loadText(directory, `${text}${FOR_ALL}`, { env });
      const shown = inForce(config);
      const time = { cron: '0 1 * * *', duration: '1h', polls: 'stop' };
      const written = parse(text);
      expect(shown).toMatchObject({
        ...written,
        projects: written.projects.map((project: Record<string, unknown[]>) => ({
          schedule: '0 * * * *',
          idle_schedule: '0 0 * * *',
          timezone: 'Europe/Berlin',
          expect: { max_pending: 'auto', max_running: '2h', max_failure_ratio: 0 },
          ...project,
          maintenance: [
            { ...time, timezone: project['timezone'] ?? 'Europe/Berlin' },
            ...(project['maintenance'] ?? []),
          ],
        })),
      });
      const again = await loadText(directory, JSON.stringify(shown), { env });
      const withoutFiles = (whole: object) => ({ ...whole, sources: [] });
      expect(withoutFiles(again)).toEqual(withoutFiles(config));
    },
  );

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
