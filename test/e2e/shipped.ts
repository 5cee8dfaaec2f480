import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';

const CONFIG = join(import.meta.dirname, '../../config');
/** In place of every `for` that is more than none: what a stalled machine does not reach. */
const HELD = '5s';
/** The same of alerts that have to come before others, or that the time until the first scrape is no cause for. */
const HELD_OTHERWISE: Readonly<Record<string, string>> = {
  EvalwatchServiceFailing: '3s',
  EvalwatchAbsent: '30s',
  EvalwatchConfigReloadFailed: '30s',
  EvalwatchErrorInfoBacklog: '30s',
};

export interface Addresses {
  /** `host:port`. */
  readonly daemon: string;
  /** `host:port`. */
  readonly alertmanager: string;
  /** Base address. */
  readonly webhook: string;
}

/**
 * A shipped file as text, at a pace of seconds and with these addresses. Whatever else it says, the expressions first of
 * all, stays as it is.
 * @param file below config/
 * @param edit changes its text as its user would
 */
export async function shipped(
  file: string,
  addresses: Addresses,
  edit: (text: string) => string = (text) => text,
): Promise<string> {
  const content: unknown = parse(edit(await readFile(join(CONFIG, file), 'utf8')));
  // JSON is YAML too.
  return JSON.stringify(content, function (this: { alert?: string }, key, value: unknown) {
    if (key !== 'for') return hurried(key, value, addresses);
    return value === '0s' ? value : (HELD_OTHERWISE[this.alert ?? ''] ?? HELD);
  });
}

function hurried(key: string, value: unknown, addresses: Addresses): unknown {
  switch (key) {
    case 'keep_firing_for':
      return '20s';
    case 'scrape_interval':
    case 'evaluation_interval':
    case 'group_interval':
    case 'interval':
      return '1s';
    case 'repeat_interval':
      // Of the watchdog; the others are hours.
      return value === '50s' ? '1500ms' : value;
    case 'group_wait':
      return '0s';
    case 'targets':
      return String(value) === '127.0.0.1:9093' ? [addresses.alertmanager] : [addresses.daemon];
    case 'url':
      return addresses.webhook;
    default:
      return value;
  }
}
