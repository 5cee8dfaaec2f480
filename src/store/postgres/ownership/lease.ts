/**
 * Of a row of `worker`: it may still own something. A lease that ends later than any that was begun by now can, twice the
 * longest (`store.lease`), is one from before the database's clock was set back: a living worker soon renews its own.
 */
export const LEASE_HOLDS = "expires_at > now() AND expires_at <= now() + interval '10 minutes'";
