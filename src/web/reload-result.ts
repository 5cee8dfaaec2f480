/** Result of loading the configuration again. */
export interface ReloadResult {
  readonly ok: boolean;
  /** Reasons for the failure, one line each; empty after a success. */
  readonly reasons: readonly string[];
}
