-- R2: the admitted events that exist for the job. t is the event time, w is W(r) of R4: the highest reach before, less B, or minus
-- infinity. q1, q2.. are the meter's quantities, a1.. its attributes; what a kind does not state is 0 (quantities are never negative)
-- or null: account, sku and attributes stand on starts and events only, a status on ends and events only.
SELECT part, log_offset, coalesce(log_time, 0) AS log_time, kind, {{ids ""}}, id_hash{{references ", $"}},
       account, sku, event_time AS t, coalesce(prior_max_reach - {{B}}, {{never}}) AS w{{all ", coalesce($, 0) AS q#"}}{{attributes ", $ AS a#"}}, status, payload_hash
FROM {{records}}
WHERE bucket = 'event'{{onlyIDs}}
