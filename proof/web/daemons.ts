import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import bcrypt from 'bcrypt';
import { ask } from '../../test/support/ask.ts';
import { type Daemon, startDaemon, until } from '../../test/support/evalwatch.ts';
import { NODE_FLAGS } from '../../test/support/node-flags.ts';
import { promptItem, sendJson, startService } from '../../test/support/service.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';

/** `open` admits every client, `login` users. */
export type ServerKind = 'open' | 'login';

/** Id of the prompt of each project. */
export const PROMPT = 'prompt';
/** Text in every answer that requires a login. */
export const PROTECTED = 'PROTECTED';
export const USER = 'alice';
export const PASSWORD = 'open: sesame ü';
/** Ids of the projects. Most have to be encoded in a path. */
export const PROJECTS: readonly string[] = [
  'p',
  'a/b',
  '100%',
  '%41',
  'ü',
  'a b',
  '../x',
  '-',
  'a\nb',
  'x?#y',
  'metrics',
  PROTECTED,
];

/**
 * Starts a daemon of each kind, whose store has a failure of each project. `onEnd` is called if one ends by itself; `await
 * using` ends all.
 */
export async function startDaemons(source: string, onEnd: (error: Error) => void) {
  await using opened = new AsyncDisposableStack();
  const { path: directory } = opened.use(await temporaryDirectory());
  let status = 'RUNNING';
  const service = await startService(({ path }, response) => {
    if (path.startsWith('/v2/projects/')) sendJson(response, [promptItem(PROMPT, status)]);
    else sendJson(response, { error_info: { error_id: PROTECTED, error_msg: PROTECTED } });
  });
  opened.use(service);
  const write = (name: string, content: object) =>
    writeFile(join(directory, name), JSON.stringify(content));
  const protections: Readonly<Record<ServerKind, object>> = {
    open: {},
    login: { basic_auth_users: { [USER]: bcrypt.hashSync(PASSWORD, 4) } },
  };
  await writeFile(join(directory, 'key'), 'key-of-the-proof');

  const start = async (kind: ServerKind) => {
    await write(`${kind}.web.json`, protections[kind]);
    await write(`${kind}.json`, {
      service: { base_url: service.url, api_key_file: 'key', max_requests_per_second: 0 },
      // Only POST /-/poll polls.
      schedule: '0 0 1 1 *',
      projects: PROJECTS.map((id) => ({ id })),
      store: { path: `${kind}.db` },
      web: {
        listen: '127.0.0.1:0',
        enable_lifecycle: true,
        ...(kind !== 'open' && { config_file: `${kind}.web.json` }),
      },
    });
    const daemon = opened.use(
      startDaemon({ config: join(directory, `${kind}.json`) }, { source, nodeArgs: NODE_FLAGS }),
    );
    void daemon.ended.then(({ code, stderr }) =>
      onEnd(new Error(`the daemon ended with ${code}: ${stderr}`)),
    );
    return daemon;
  };
  const daemons: Readonly<Record<ServerKind, Daemon>> = {
    open: await start('open'),
    login: await start('login'),
  };
  const portOf = async (kind: ServerKind) => Number(new URL(await daemons[kind].url()).port);
  const ports: Readonly<Record<ServerKind, number>> = {
    open: await portOf('open'),
    login: await portOf('login'),
  };
  const haveAll = (event: string) =>
    until(() => Object.values(daemons).every((each) => each.of(event).length >= PROJECTS.length));
  if (!(await haveAll('poll.completed'))) throw new Error('the first polls have not ended');
  status = 'FAILED';
  for (const daemon of Object.values(daemons)) {
    const url = `${await daemon.url()}/-/poll`;
    const auth = `${USER}:${PASSWORD}`;
    const { status: code, text } = await ask(url, { method: 'POST', auth });
    if (code !== 200) throw new Error(`poll: ${code} ${text}`);
  }
  if (!(await haveAll('prompt.failed'))) throw new Error('failures are not told');
  const closing = opened.move();
  return {
    ports,
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  };
}
