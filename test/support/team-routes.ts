const EXAMPLE = /^( *)# - (?:receiver|name): search.*\n(?:\1# .*\n)*/gm;
const WEBHOOK = /^( *)# webhook_configs:\n(?:\1# .*\n)*/gm;

/**
 * Edits the text of config/alertmanager/alertmanager.yml as its comments say: removes the "# " from the examples of a team,
 * and repeats them for each of these teams.
 */
export function withTeams(config: string, teams: readonly string[]): string {
  return config.replaceAll(EXAMPLE, (example) =>
    teams.map((team) => uncommented(example).replaceAll('search', team)).join(''),
  );
}

/** Gives the default receivers, and if wanted the watchdog, their webhooks: removes the "# " from them. */
export function withWebhooks(
  config: string,
  options: { readonly watchdog?: boolean } = {},
): string {
  return config.replaceAll(WEBHOOK, (webhook) =>
    webhook.includes('watchdog') && !options.watchdog ? webhook : uncommented(webhook),
  );
}

function uncommented(example: string): string {
  return example.replaceAll(/^( *)# /gm, '$1');
}
