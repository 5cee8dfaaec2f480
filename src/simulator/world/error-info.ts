/** Error of a failed prompt, in the format of the service. */
export interface ErrorInfo {
  readonly error_id: string;
  readonly error_msg: string;
}
