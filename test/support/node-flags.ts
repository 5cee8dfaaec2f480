/** Those of Node under which the daemon is run (package.json, Dockerfile, systemd unit); tests of memory use them too. */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=2'];
