/** Quality of a grouping, with the metrics of the literature on log parsing. */
export interface Score {
  /** Share of the messages whose group holds exactly the messages of their template. */
  readonly accuracy: number;
  /** Harmonic mean of the shares of groups and of templates that match each other exactly. */
  readonly f1: number;
  readonly groups: number;
  readonly templates: number;
}

/** Counts messages by template and cause. Memory grows with the number of templates and causes, not of messages. */
export class Grouping {
  readonly #templates = new Map<string, Map<string, number>>();
  readonly #groups = new Map<string, number>();

  add(template: string, cause: string): void {
    const causes = this.#templates.get(template) ?? new Map<string, number>();
    this.#templates.set(template, causes);
    causes.set(cause, (causes.get(cause) ?? 0) + 1);
    this.#groups.set(cause, (this.#groups.get(cause) ?? 0) + 1);
  }

  get score(): Score {
    let messages = 0;
    let right = 0;
    let exact = 0;
    for (const causes of this.#templates.values()) {
      for (const [cause, count] of causes) {
        messages += count;
        if (causes.size > 1 || this.#groups.get(cause) !== count) continue;
        right += count;
        exact += 1;
      }
    }
    const groups = this.#groups.size;
    const templates = this.#templates.size;
    return {
      accuracy: messages === 0 ? 0 : right / messages,
      f1: groups === 0 ? 0 : (2 * exact) / (groups + templates),
      groups,
      templates,
    };
  }
}
