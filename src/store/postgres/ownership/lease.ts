/**
 * Condition on a row of `worker` under which the worker may still own projects. A lease that ends later than any current
 * lease can (twice the maximum of `store.lease`) was made before the clock of the database was set back; a living worker
 * renews such a lease soon.
 */
export const LEASE_HOLDS = "expires_at > now() AND expires_at <= now() + interval '10 minutes'";
