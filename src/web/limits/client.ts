import { isIPv6 } from 'node:net';
import type { HttpBindings } from '@hono/node-server';

const GROUPS = 8;
const NETWORK_GROUPS = 4;

/**
 * Returns the name of the client behind a remote address: the IPv4 address, or the /64 network of the IPv6 address, which
 * usually belongs to one client.
 */
export function clientOf(remoteAddress: string | undefined): string {
  if (remoteAddress === undefined || !isIPv6(remoteAddress)) return remoteAddress ?? '';
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(remoteAddress) ?? [];
  if (mapped !== undefined) return mapped;
  const [left = '', right = ''] = remoteAddress.split('::');
  const groups = left === '' ? [] : left.split(':');
  const rightGroups = right === '' ? [] : right.split(':');
  while (groups.length + rightGroups.length < GROUPS) groups.push('0');
  return `${[...groups, ...rightGroups].slice(0, NETWORK_GROUPS).join(':')}::/64`;
}

/** Connection of a request, for the handlers of hono; absent in tests without a connection. */
export interface ConnectionEnv {
  readonly Bindings: Partial<HttpBindings>;
}

/** A request that waits for its turn. */
export interface Requester {
  /** Name of the client, from {@link clientOf}. */
  readonly client: string;
  /** Aborts when the client closes the connection. */
  readonly gone?: AbortSignal;
}
