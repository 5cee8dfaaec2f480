/** Time that no lease can have left, minutes: twice the maximum of `store.lease`. */
export const LONGEST_REMAINDER_MINUTES = 10;

/**
 * Condition on a row of `worker` under which the worker may still own projects. A lease that ends later than any current lease
 * can was made before the clock of the database was set back; a living worker renews such a lease soon.
 */
export const LEASE_HOLDS = `expires_at > now() AND expires_at <= now() + interval '${LONGEST_REMAINDER_MINUTES} minutes'`;
