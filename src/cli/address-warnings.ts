import type { HeartbeatUrl } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';

/**
 * Warns of a base address that ends in the version of the API: evalwatch adds `/v2` itself
 * (docs/specification.md#requests), and the service answers 404 to `/v2/v2`.
 * @param baseUrl without a slash at its end
 */
export function addressWarnings(baseUrl: string): readonly string[] {
  if (!baseUrl.endsWith('/v2')) return [];
  return [
    `service.base_url ends in /v2, and evalwatch adds /v2 to every path: it will request ${baseUrl}/v2/projects/…; ` +
      'remove /v2, unless the service really has it twice',
  ];
}

/** Returns a warning if the address of the heartbeat is missing or invalid. Never contains any part of the address. */
export async function heartbeatWarnings(
  source: HeartbeatUrl | undefined,
): Promise<readonly string[]> {
  if (source === undefined) return [];
  const { readHeartbeatUrl } = await import('../config/heartbeat-url.ts');
  try {
    await readHeartbeatUrl(source);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return [error.message];
    throw error;
  }
}
