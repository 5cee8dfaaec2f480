import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { API_KEY, CONCURRENCY, type Task } from './contender.ts';

export interface Configuration extends Pick<Task, 'baseUrl' | 'projects' | 'directory'> {
  /** Sections that replace the default ones. */
  readonly change?: object;
}

/** Writes a typical configuration whose limits slow no poll down, with log level `warn`. Returns its path. */
export async function writeConfiguration(options: Configuration): Promise<string> {
  const { baseUrl, projects, directory, change } = options;
  const file = join(directory, 'evalwatch.yaml');
  const content = {
    service: {
      base_url: baseUrl,
      api_key_file: 'key',
      max_concurrency: CONCURRENCY,
      max_requests_per_second: 0,
      max_response_size: '256MiB',
      timeout: '5m',
    },
    projects: projects.map((id) => ({ id })),
    store: { path: 'evalwatch.db' },
    web: { listen: '127.0.0.1:0' },
    log: { level: 'warn' },
    ...change,
  };
  await writeFile(join(directory, 'key'), `${API_KEY}\n`);
  // JSON is valid YAML.
  await writeFile(file, JSON.stringify(content));
  return file;
}
