/** A failure as the service words it. */
export interface ErrorInfo {
  readonly error_id: string;
  readonly error_msg: string;
}
