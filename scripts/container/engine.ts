import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);
/** Maximum size of the output of a call. */
const MOST_OUTPUT_BYTES = 64 * 1024 * 1024;

/** The container engine of this machine. */
export interface Engine {
  /** Builds the Dockerfile of `directory` into the image `tag`. */
  build(directory: string, tag: string, args: readonly string[]): Promise<void>;
  /** Runs the engine with these arguments. @returns its stdout, trimmed */
  run(...args: readonly string[]): Promise<string>;
}

/**
 * Finds a container engine: the program in `CONTAINER_ENGINE`, with optional arguments, otherwise docker or podman.
 * `CONTAINER_BUILD` is the build command of engines that build with another program; directory and tag are appended to it.
 * `NODE_IMAGE` replaces the base image of the Dockerfile where that one is not available.
 * @throws {Error} when there is no engine
 */
export async function findEngine(env: NodeJS.ProcessEnv): Promise<Engine> {
  const engine = env['CONTAINER_ENGINE']?.split(' ') ?? (await firstOf(['docker', 'podman']));
  const builder = env['CONTAINER_BUILD']?.split(' ');
  const nodeImage = env['NODE_IMAGE'];
  const base = nodeImage === undefined ? [] : ['--build-arg', `NODE_IMAGE=${nodeImage}`];
  return {
    build: async (directory, tag, args) => {
      if (builder === undefined)
        await call([...engine, 'build', '-t', tag, ...base, ...args, directory]);
      else await call([...builder, directory, tag, ...base, ...args]);
    },
    run: (...args) => call([...engine, ...args]),
  };
}

async function firstOf(programs: readonly string[]): Promise<readonly string[]> {
  for (const program of programs) {
    const found = await call([program, 'version']).then(
      () => true,
      () => false,
    );
    if (found) return [program];
  }
  throw new Error('neither docker nor podman works here: name an engine in CONTAINER_ENGINE');
}

async function call([program = '', ...args]: readonly string[]): Promise<string> {
  const { stdout } = await execute(program, args, { maxBuffer: MOST_OUTPUT_BYTES });
  return stdout.trim();
}
