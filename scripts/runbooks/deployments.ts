/** Shell functions that the commands of the runbooks use (docs/operations.md#commands-by-deployment). */
export type ShellFunction = 'evalwatch' | `evalwatch_${'log' | 'get' | 'state' | 'disk'}`;

/** Daemon that the functions of a page act on. */
export interface Target {
  /** Whether the page is about one of several workers. */
  readonly isWorker: boolean;
  /** Whether the functions must also work while the daemon does not run. */
  readonly mayBeDown: boolean;
}

export interface Deployment {
  readonly title: string;
  /** Assignment of the variable that the functions use, with an example; undefined if they use none. */
  readonly variable: (target: Target) => string | undefined;
  /** Bodies of the functions, each one line. */
  readonly functions: (target: Target) => Readonly<Record<ShellFunction, string>>;
}

const GET = 'curl -sS --max-time 10 "http://127.0.0.1:10570$1"; echo';
/** The image has neither a shell nor any program besides node. */
const GET_BY_NODE = `node -e 'fetch("http://127.0.0.1:10570" + process.argv[1], { signal: AbortSignal.timeout(10000) }).then((answer) => answer.text()).then(console.log)' "$1"`;
const DISK_BY_NODE = `node -e 'const { bavail, bsize, ffree } = fs.statfsSync("/data"); console.log(Math.round((bavail * bsize) / 1e6), "MB free,", ffree, "inodes free"); for (const file of fs.readdirSync("/data")) console.log(fs.statSync("/data/" + file).size, file)'`;
const EXIT =
  "'{{.State.Status}}, exit code {{.State.ExitCode}}, out of memory: {{.State.OOMKilled}}, restarts: {{.RestartCount}}'";
const PODS = '-l app.kubernetes.io/name=evalwatch';
const CONTAINER = '.status.containerStatuses[0]';
const POD_COLUMNS = `'POD:.metadata.name,IP:.status.podIP,READY:${CONTAINER}.ready,RESTARTS:${CONTAINER}.restartCount,LAST_EXIT:${CONTAINER}.lastState.terminated.exitCode,WHY:${CONTAINER}.lastState.terminated.reason'`;

/** The deployments for which each runbook has a block of commands. */
export const DEPLOYMENTS: readonly Deployment[] = [
  {
    title: 'Docker',
    variable: () => 'CONTAINER=evalwatch',
    functions: ({ mayBeDown }) => {
      const name = '"$CONTAINER"';
      const inspect = (what: string) => `docker inspect -f '{{${what}}}' ${name}`;
      // The mounts, environment and network of the stopped container give access to its configuration and store.
      const environment = `<(${inspect('range .Config.Env}}{{println .}}{{end')})`;
      const network = `"$(${inspect('.HostConfig.NetworkMode')})"`;
      const image = `"$(${inspect('.Config.Image')})"`;
      return {
        evalwatch: mayBeDown
          ? `docker run --rm --volumes-from ${name} --env-file ${environment} --network ${network} ${image} "$@"`
          : `docker exec ${name} evalwatch "$@"`,
        evalwatch_log: `docker logs --since "$1" ${name} 2>&1`,
        evalwatch_get: `docker exec ${name} ${GET_BY_NODE}`,
        evalwatch_state: `docker inspect -f ${EXIT} ${name}`,
        evalwatch_disk: `docker exec ${name} ${DISK_BY_NODE}`,
      };
    },
  },
  {
    title: 'Kubernetes',
    variable: ({ isWorker }) => (isWorker ? 'POD=evalwatch-5d9c7b6f48-x2k4p' : undefined),
    functions: ({ isWorker, mayBeDown }) => {
      const name = isWorker ? '"$POD"' : 'deployment/evalwatch';
      const log = `kubectl logs ${isWorker ? name : `${PODS} --tail -1`} --since "$1"`;
      const last = `${log} --previous --ignore-errors 2>/dev/null; `;
      return {
        evalwatch: `kubectl exec ${name} -- evalwatch "$@"`,
        evalwatch_log: `${mayBeDown ? last : ''}${log}`,
        evalwatch_get: `kubectl exec ${name} -- ${GET_BY_NODE}`,
        evalwatch_state: `kubectl get pods ${PODS} -o custom-columns=${POD_COLUMNS}`,
        evalwatch_disk: `kubectl exec ${name} -- ${DISK_BY_NODE}`,
      };
    },
  },
  {
    title: 'systemd',
    variable: () => undefined,
    functions: () => ({
      evalwatch: 'sudo /usr/local/bin/evalwatch "$@" --config /etc/evalwatch/evalwatch.yaml',
      evalwatch_log: 'sudo journalctl -u evalwatch -o cat --since "-$1"',
      evalwatch_get: GET,
      evalwatch_state: 'systemctl show evalwatch -p ActiveState,Result,ExecMainStatus,NRestarts',
      evalwatch_disk: 'sudo df -h /var/lib/evalwatch; sudo ls -l /var/lib/evalwatch/',
    }),
  },
];
