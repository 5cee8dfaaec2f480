/** Source of a secret: an API key (docs/specification.md#api-keys) or the connection string of the database. */
export type SecretSource =
  | {
      readonly file: string;
      /** Whether the path could be the key itself, so that no message shows it unless there is such a file. */
      readonly couldBeKey?: boolean;
    }
  /** `value` is that of the variable `env` when the configuration was loaded; undefined if it was unset or empty. */
  | { readonly env: string; readonly value: string | undefined };
