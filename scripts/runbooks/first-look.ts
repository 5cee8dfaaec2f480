import { DEPLOYMENTS, type ShellFunction, type Target } from './deployments.ts';

const FUNCTIONS: readonly ShellFunction[] = [
  'evalwatch',
  'evalwatch_log',
  'evalwatch_get',
  'evalwatch_state',
  'evalwatch_disk',
];
const PAGE = 'http://127.0.0.1:10570/';
const DAEMON_MAY_BE_DOWN = /^# Evalwatch(?:Absent|CrashLooping|Down)$/m;
const ONE_OF_SEVERAL_WORKERS = /^# Evalwatch(?:ProjectsUnowned|WorkerLeaseLost)$/m;

/** A step under Diagnose: a question, and the commands that answer it. */
interface Step {
  readonly number: string;
  readonly question: string;
  readonly commands: readonly string[];
}

/**
 * Returns a runbook with its section First look: the page, and for each deployment one block to paste, which runs the
 * commands of the steps under Diagnose. The commands are written in the steps only, so the blocks cannot differ from them.
 * @throws {Error} if a step has no question, or one that a shell would not print as it is
 */
export function withFirstLook(runbook: string): string {
  const [head = '', diagnose = ''] = runbook.split(/^## Diagnose$/m);
  const [before = ''] = head.split(/^## First look$/m);
  return `${before}## First look\n\n${firstLook(runbook, diagnose)}\n## Diagnose${diagnose}`;
}

function firstLook(runbook: string, diagnose: string): string {
  const steps = stepsOf(diagnose.split(/^## Fix$/m)[0] ?? '');
  const ofEvalwatch = steps.filter(({ commands }) => commands.join('\n').startsWith('evalwatch'));
  const used = FUNCTIONS.filter((name) =>
    new RegExp(String.raw`(?:^|[|;] *)${name}(?![\w-])`, 'm').test(
      ofEvalwatch.flatMap(({ commands }) => commands).join('\n'),
    ),
  );
  const target: Target = {
    isWorker: ONE_OF_SEVERAL_WORKERS.test(runbook),
    mayBeDown: DAEMON_MAY_BE_DOWN.test(runbook),
  };
  const hasProject = diagnose.includes('"$PROJECT"') || diagnose.includes('"PROJECT"');
  const comment = '<!-- Made from the steps under Diagnose by npm run generate. -->';
  const page = pageOf(hasProject);
  if (used.length === 0) {
    return `${comment}\n\n${page}\n\n${sh(steps.flatMap((step) => run(step)))}`;
  }
  const blocks = DEPLOYMENTS.map(({ title, variable, functions }) => {
    const bodies = functions(target);
    const assignment = variable(target);
    const lines = [
      ...(hasProject ? ['PROJECT=checkout-bot'] : []),
      ...(assignment === undefined ? [] : [assignment]),
      ...used.map((name) => `${name}() { ${bodies[name]}; }`),
      ...ofEvalwatch.flatMap((step) => run(step)),
    ];
    return `${title}:\n\n${sh(lines)}`;
  });
  return [comment, page, advice(hasProject, target), ...blocks].join('\n\n');
}

function pageOf(hasProject: boolean): string {
  const path = hasProject ? 'projects/PROJECT' : '';
  const what = hasProject ? 'the page of the project' : 'the status page';
  return `**Page:** the \`page_url\` of the alert opens ${what}; without \`web.external_url\` it is \`${PAGE}${path}\`.`;
}

function advice(hasProject: boolean, { isWorker, mayBeDown }: Target): string {
  return [
    '**Commands:** paste the block of your deployment. It runs the steps of Diagnose and defines the commands that they use;',
    '[other deployments](../operations.md#commands-by-deployment) define them differently.',
    hasProject ? '`PROJECT` is the label `project` of the alert.' : '',
    isWorker
      ? '`CONTAINER` or `POD` is that of the worker, on Kubernetes the pod with the IP of the label `instance` (`kubectl get pods -o wide`); with systemd, log in to its machine.'
      : 'With Docker Compose, `CONTAINER` is `evalwatch-evalwatch-1`.',
    mayBeDown
      ? 'Docker and systemd need no running daemon; on Kubernetes, read state and log if `kubectl exec` fails.'
      : '',
  ]
    .filter((sentence) => sentence !== '')
    .join(' ');
}

function stepsOf(diagnose: string): readonly Step[] {
  return [...diagnose.matchAll(/^(\d+)\. (.+)\n\n {3}```sh\n([\s\S]*?) {3}```$/gm)].map(
    ([, number = '', text = '', code = '']) => {
      const [, question] = /^([^?`"$\\!]+\?)/.exec(text) ?? [];
      if (question === undefined)
        throw new Error(`step ${number} begins with no plain question: ${text}`);
      const commands = code
        .trimEnd()
        .split('\n')
        .map((line) => line.trim());
      return { number, question, commands };
    },
  );
}

function run({ number, question, commands }: Step): readonly string[] {
  return [`echo "${number}. ${question}"`, ...commands];
}

/** Returns a block without comments, because an interactive zsh runs them as commands. */
function sh(lines: readonly string[]): string {
  return ['```sh', ...lines, '```', ''].join('\n');
}
