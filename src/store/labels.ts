// A project has each label once, in the table `label`; its records refer to it by number.

/** The numbers of a record's labels; null without one. */
export type LabelNumbers = readonly [
  experiment: number | null,
  dataset: number | null,
  metric: number | null,
];

/** A row of `label`. */
export type LabelColumns = readonly [label: number, text: string];

/** Gives labels that are written together their places in a list of texts, from 1. */
export class LabelPlaces {
  readonly #places = new Map<string, number>();

  /** The texts in the order of their places. */
  get texts(): readonly string[] {
    return [...this.#places.keys()];
  }

  of(text: string | undefined): number | null {
    if (text === undefined) return null;
    let place = this.#places.get(text);
    if (place === undefined) this.#places.set(text, (place = this.#places.size + 1));
    return place;
  }
}
