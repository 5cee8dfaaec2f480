/** Why a prompt failed, as the service describes it. */
export interface ErrorInfo {
  readonly error_id: string;
  readonly error_msg: string;
}
