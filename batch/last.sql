-- R4, R13: the last watermark of every partition of the job; w_end is plus infinity where the log was drained. Before the first
-- record stands what the checkpoint knows of the log before it (R8). A greatest over null is not portable: hence the coalesce.
SELECT p.part, p.drained,
       CASE WHEN greatest(coalesce(t.reach, {{never}}), p.max_reach) = {{never}} THEN {{never}}
            ELSE greatest(coalesce(t.reach, {{never}}), p.max_reach) - {{B}} END AS w_last,
       CASE WHEN p.drained = 1 THEN {{forever}}
            WHEN greatest(coalesce(t.reach, {{never}}), p.max_reach) = {{never}} THEN {{never}}
            ELSE greatest(coalesce(t.reach, {{never}}), p.max_reach) - {{B}} END AS w_end,
       CAST(coalesce(t.records, 0) AS BIGINT) AS records
FROM ({{parts}}) AS p
LEFT JOIN (SELECT part, max(reach) AS reach, sum(records) AS records FROM tally GROUP BY part) AS t ON p.part = t.part
