import { isIPv6 } from 'node:net';
import type { HttpBindings } from '@hono/node-server';

const GROUPS = 8;
const NETWORK_GROUPS = 4;

/**
 * Names the client behind a remote address: its IPv4 address, or the /64 network of its IPv6 address, which one client
 * has whole.
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

/** What a handler knows of the connection of its request; nothing in tests without one. */
export interface ConnectionEnv {
  readonly Bindings: Partial<HttpBindings>;
}

/** Who waits for something. */
export interface Asker {
  /** As {@link clientOf} names it. */
  readonly client: string;
  /** Aborts when it does not wait any longer. */
  readonly gone?: AbortSignal;
}

/** Names the client of a request. Without a connection, as in tests, the name is empty. */
export function askerOf(context: AskedContext): Asker {
  return {
    client: clientOf(context.env?.incoming?.socket.remoteAddress),
    gone: context.req.raw.signal,
  };
}

interface AskedContext {
  readonly env?: Partial<HttpBindings>;
  readonly req: { readonly raw: Request };
}
