/** A parsed value, or the error as `must …`. */
export type Checked<T> =
  | { readonly value: T; readonly fault?: never; readonly hint?: never }
  /** `hint` finds a valid value that may have been meant. */
  | { readonly fault: string; readonly hint?: () => string | undefined; readonly value?: never };
