import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** API key with special characters of URLs and regular expressions. */
export const KEY = 'soaked-through-and-through/key+1';
const MISSING_AFTER = 2;

export interface Project {
  readonly id: string;
  readonly datasets: boolean;
  /** Schedule of its own. */
  readonly schedule?: string;
  /** File with a key of its own. */
  readonly api_key_file?: string;
}

export interface ConfigurationOptions {
  readonly schedule?: string;
  readonly timeout?: string;
  readonly maxConcurrency?: number;
  /** Further options of the service. */
  readonly service?: object;
  readonly store?: object;
}

/** Writes a configuration with its key into a directory and returns its file. */
export async function writeConfiguration(
  directory: string,
  baseUrl: string,
  projects: readonly Project[],
  {
    schedule = '* * * * * *',
    timeout = '2s',
    maxConcurrency = 8,
    service = {},
    store = { path: 'evalwatch.db' },
  }: ConfigurationOptions = {},
): Promise<string> {
  const file = join(directory, 'evalwatch.yaml');
  const content = {
    service: {
      base_url: baseUrl,
      api_key_file: 'key',
      timeout,
      // Few, so that some polls fail.
      retries: 1,
      max_concurrency: maxConcurrency,
      max_requests_per_second: 0,
      max_response_size: '1MiB',
      ...service,
    },
    schedule,
    missing_after: MISSING_AFTER,
    projects,
    store,
    web: { listen: '127.0.0.1:0' },
    log: { level: 'debug' },
  };
  await writeFile(join(directory, 'key'), KEY);
  // JSON is valid YAML.
  await writeFile(file, JSON.stringify(content));
  return file;
}
