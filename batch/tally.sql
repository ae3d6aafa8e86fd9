-- What the log holds, before any verdict: records by bucket (R2, R14), and the highest reach of the admitted ones (R4):
-- the event time, or the log time where that is smaller. A comparison with a missing log time is null and falls through.
SELECT part, bucket, reason, kind,
       CAST(count(*) AS BIGINT) AS records,
       max(CASE WHEN bucket IN ('event', 'tick')
                THEN CASE WHEN log_time < event_time THEN log_time ELSE event_time END END) AS reach
FROM {{records}}
GROUP BY part, bucket, reason, kind
