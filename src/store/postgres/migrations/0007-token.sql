-- One token takes the place of epoch and version: claim, release, each commit and each change of the configured projects replace
-- it, and no statement that names an earlier one changes anything.
--
-- Workers of an earlier version can neither poll nor keep a lease from here on: their statements name what is gone.

DROP TABLE evalwatch.configuration;
ALTER TABLE evalwatch.project DROP COLUMN epoch, DROP COLUMN version;
DROP SEQUENCE evalwatch.epoch;
DELETE FROM evalwatch.worker;
ALTER TABLE evalwatch.worker RENAME COLUMN config_digest TO configuration;

-- Each row gets another token. It is never NULL, and never the same again.
ALTER TABLE evalwatch.project ADD COLUMN token uuid NOT NULL DEFAULT gen_random_uuid();
UPDATE evalwatch.project SET owner = NULL WHERE owner IS NOT NULL;

-- The token that the commit gave to the project: it shows that a commit was made whose answer was lost. NULL before version 7.
ALTER TABLE evalwatch.transition DROP COLUMN epoch, DROP COLUMN version, ADD COLUMN token uuid;

-- Only the owner of a project reports its failures and counts their error_ids.
ALTER TABLE evalwatch.failure DROP COLUMN claimed_by;
ALTER TABLE evalwatch.error_total DROP COLUMN place;
