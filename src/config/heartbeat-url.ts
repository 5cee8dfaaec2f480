import type { HeartbeatUrl } from './config.ts';
import { HEARTBEAT_URL_OPTIONS } from './secret-options.ts';
import { readSecretText } from './secret-text.ts';
import { parseHeartbeatUrl } from './values/address.ts';

/**
 * Reads the address that heartbeats request.
 * @throws {ConfigError} if the address is missing or invalid; its message contains no part of the address
 */
export async function readHeartbeatUrl(source: HeartbeatUrl): Promise<string> {
  if ('url' in source) return source.url;
  const place = { section: 'heartbeat', options: HEARTBEAT_URL_OPTIONS };
  return await readSecretText(source, place, (url) => {
    const { fault } = parseHeartbeatUrl(url);
    return fault && `the address ${fault}`;
  });
}
