import { parseListen } from './config/address.ts';
import { environment, readVariable } from './config/environment.ts';

// For the image, which sets the variable: exits 0 if the daemon in the same container is alive, else 1.
const listen = parseListen(readVariable(environment(), 'EVALWATCH_WEB_LISTEN') ?? '');
const port = listen.value?.port ?? 10570;
try {
  const answer = await fetch(`http://127.0.0.1:${port}/-/healthy`, {
    signal: AbortSignal.timeout(4000),
  });
  process.exitCode = answer.ok ? 0 : 1;
} catch {
  process.exitCode = 1;
}
