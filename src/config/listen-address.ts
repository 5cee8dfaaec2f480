import { DEFAULT_LISTEN, type ListenAddress, parseListen } from './values/address.ts';
import type { Checked } from './values/checked.ts';
import { type Env, readVariable } from './environment.ts';
import { MAX_CONFIG_BYTES, readDocument } from './document/read-document.ts';
import { isMapping, mappingAt } from './document/tree.ts';

/**
 * Reads the address that a daemon with this file and environment listens on. Ignores errors elsewhere in the file.
 * @throws {ConfigError} when the file is needed and cannot be read or is not YAML
 */
export async function readListenAddress(file: string, env: Env): Promise<Checked<ListenAddress>> {
  const override = readVariable(env, 'EVALWATCH_WEB_LISTEN');
  if (override !== undefined) return parseListen(override);
  const { value: root } = await readDocument(file, MAX_CONFIG_BYTES, '');
  const { listen } = mappingAt(isMapping(root) ? root : {}, 'web');
  return parseListen(typeof listen === 'string' ? listen : DEFAULT_LISTEN);
}

/** Returns the addresses at which a server on `host` answers clients on the same machine, the likeliest first. */
export function localAddresses(host: string): readonly string[] {
  const { hostname } = new URL(host.includes(':') ? `http://[${host}]` : `http://${host}`);
  if (hostname === '0.0.0.0') return ['127.0.0.1'];
  // A container often has no ::1, and a server on :: answers IPv4 as well.
  if (hostname === '[::]') return ['::1', '127.0.0.1'];
  return [host];
}
