/** A request that asks for what cannot be; its message is for whoever asked. */
export class RequestError extends Error {
  readonly status: 400 | 404;

  constructor(status: 400 | 404, message: string) {
    super(message);
    this.status = status;
  }
}
