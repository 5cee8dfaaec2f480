import { request } from 'undici';
import { onTestFinished } from 'vitest';
import { startSimulator, type SimulatorOptions } from '../../../src/simulator/server.ts';
import { World, type WorldOptions } from '../../../src/simulator/world/world.ts';

export const KEY = 'a-key-for-all-projects';
export const PROMPTS = '/v2/projects/checkout-bot/prompts/';
export const DATASETS = '/v2/projects/checkout-bot/datasets/';

/** Creates a world that only a test changes. */
export function stillWorld(options: Partial<WorldOptions> = {}): World {
  return new World({
    now: () => Date.now(),
    projects: ['checkout-bot', 'search-ranking'],
    promptsPerProject: 5,
    ...options,
  });
}

/** Starts a simulator that is closed when the test ends, with a client for it. */
export async function simulate(options: Partial<SimulatorOptions> = {}) {
  const simulator = await startSimulator({ world: stillWorld(), keys: KEY, ...options });
  onTestFinished(() => simulator.close());
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await request(simulator.url + path, {
      headers: { 'x-api-key': KEY, accept: 'application/json', ...headers },
    });
    const body = Buffer.from(await answer.body.arrayBuffer());
    return { status: answer.statusCode, headers: answer.headers, body };
  };
  const getJson = async (path: string, headers: Record<string, string> = {}): Promise<unknown> =>
    JSON.parse((await get(path, headers)).body.toString());
  return { ...simulator, simulator, get, getJson };
}
