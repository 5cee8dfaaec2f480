import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';

const CONFIG = join(import.meta.dirname, '../../config');
/** Replaces every `for` except 0s. A stalled machine stays below it. */
const HELD = '5s';
/** Replaces the `for` of alerts that must fire before others, or must not fire before the first scrape. */
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
  /** Base URL. */
  readonly webhook: string;
}

/**
 * Returns the text of a shipped file with its times cut to seconds and with these addresses. Everything else, above all the
 * expressions, stays unchanged.
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
      // Only the watchdog has 50s; the others are hours.
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
