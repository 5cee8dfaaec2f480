import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { debianTool } from '../test/support/debian-tool.ts';
import { postgresPrograms } from '../test/support/postgres-server.ts';
import { watchLive } from './handover/live.ts';
import { EVALUATED_EVERY, type Firing, type Firings, firingsOf } from './handover/firings.ts';
import {
  SCENARIOS,
  type Scenario,
  SHORT,
  SHORT_REFERENCE,
  undisturbed,
} from './handover/scenarios.ts';
import { type Figures, required, type Row, SOURCE } from './row.ts';

const RULES = '../config/prometheus/evalwatch.rules.yml';

/** Alerts without any disturbance. */
const references: { short?: Promise<Firings>; long?: Promise<Firings> } = {};

/**
 * Projects with firing or pending alerts change hands, or have no owner, and promtool evaluates the shipped rules on the
 * scrapes: only true alerts begin or end.
 */
export const handover: Row = {
  name: 'handover',
  bug: [
    {
      what: 'what nobody shows is forgotten',
      file: RULES,
      replace: [
        [
          '          < evalwatch_projects_configured:max\n',
          '          < 0 * evalwatch_projects_configured:max\n',
        ],
      ],
      notice: /EvalwatchPromptStuck stuck RUNNING search: .* instead of/,
    },
    {
      what: 'the owned projects are counted instead of the projects that are shown',
      file: RULES,
      replace: [
        [
          `            or
            vector(0)
          )
          < evalwatch_projects_configured:max
`,
          `            or
            vector(0)
          ) * 0 + on () sum(evalwatch_worker_projects)
          < evalwatch_projects_configured:max
`,
        ],
      ],
      notice: /search: .* instead of/,
    },
  ],
  run: async ({ short, print, source = SOURCE }) => {
    const promtool = required('promtool', debianTool('prometheus', 'promtool'));
    const rules = await readFile(join(source, RULES), 'utf8');
    const firings = async (fleet: Scenario['fleet']) => await firingsOf(promtool, rules, fleet);
    const scenarios = short ? [SHORT] : SCENARIOS;
    // A planted mistake does not change these, so they are evaluated only once.
    const reference = await (references[short ? 'short' : 'long'] ??= firings(
      short ? SHORT_REFERENCE : undisturbed,
    ));
    const found: string[] = [];
    for (const { name, fleet, differs = {} } of scenarios) {
      const differences = compare(await firings(fleet), reference, differs);
      print(`${name}: ${differences.length} differences`);
      found.push(...differences.map((difference) => `${name}: ${difference}`));
    }
    if (found.length > 0) throw new Error(`${found.length} differences:\n${found.join('\n')}`);
    return [
      ['alerts of projects that change hands', `${reference.size}, as without a change`],
      ['ways in which they change hands', scenarios.map(({ name }) => name).join('; ')],
      ...(short ? [] : await live(rules, print)),
    ];
  },
};

/** Runs a real Prometheus. A second one has rules that drop projects that nobody shows. */
async function live(rules: string, print: (line: string) => void): Promise<Figures> {
  const prometheus = required('Prometheus', debianTool('prometheus', 'prometheus'));
  required('PostgreSQL', postgresPrograms());
  const mistaken = rules.replaceAll(/< (?=evalwatch_projects_configured:max(?:1m)?\n)/g, '< 0 * ');
  return await watchLive(prometheus, { rules, mistaken }, print);
}

/** Returns the differences of the alerts from those of `reference`, except the expected ones. */
function compare(
  firings: Firings,
  reference: Firings,
  differs: NonNullable<Scenario['differs']>,
): readonly string[] {
  const alerts = new Set([...firings.keys(), ...reference.keys(), ...Object.keys(differs)]);
  return [...alerts].flatMap((alert) => {
    const firing = firings.get(alert);
    const expected = alert in differs ? differs[alert] : reference.get(alert);
    const isAsExpected =
      typeof expected === 'object'
        ? firing !== undefined && isAlike(firing, expected)
        : describe(firing) === describe(expected);
    return isAsExpected ? [] : [`${alert}: ${describe(firing)} instead of ${describe(expected)}`];
  });
}

/** Whether both differ by one evaluation at most: another worker may have been scraped earlier. */
function isAlike(one: Firing, other: Firing): boolean {
  const isNear = (a: number, b: number) => a === b || Math.abs(a - b) <= EVALUATED_EVERY;
  return isNear(one.from, other.from) && isNear(one.to, other.to) && one.times === other.times;
}

function describe(firing: Firing | string | undefined): string {
  if (typeof firing === 'string') return firing;
  if (firing === undefined) return 'never';
  const { from, to, times } = firing;
  const end = to === Infinity ? 'end' : String(to / 60);
  return `${from / 60} to ${end}${times === 1 ? '' : `, ${times} times`}`;
}
