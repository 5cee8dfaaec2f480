const EXAMPLE = /^( *)# - (?:receiver|name): search.*\n(?:\1# .*\n)*/gm;
const WATCHDOG = /^( *)# webhook_configs:\n(?:\1# .*\n)*/m;

/**
 * Edits the text of config/alertmanager/alertmanager.yml as its comments say: removes the "# " from the examples of a team,
 * and repeats them for each of these teams.
 */
export function withTeams(config: string, teams: readonly string[]): string {
  return config.replaceAll(EXAMPLE, (example) =>
    teams.map((team) => uncommented(example).replaceAll('search', team)).join(''),
  );
}

/** Gives the watchdog its webhook, as the comment in config/alertmanager/alertmanager.yml says. */
export function withWatchdog(config: string): string {
  return config.replace(WATCHDOG, uncommented);
}

function uncommented(example: string): string {
  return example.replaceAll(/^( *)# /gm, '$1');
}
