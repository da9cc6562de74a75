// Package comparison holds an end-to-end test for each way in which SAP's pod-reloader is known to break, each naming how its
// design fails there. Ways that a promise excludes are tested with it in suite/promise (fields that no library knows, edits
// of metadata, restores, writes while no replica runs), the labels that exclude a workload, white space in lists and writes while one
// replica of two is down in suite/edge. The tests run on a real control plane with the program as shipped.
//
// How Stakater's Reloader is known to break is tested where the same subject is tested. Releases, and objects that change in
// one go, are in suite/promise (TestP3Targeted…, TestP4Targeted…). Pauses, suspended CronJobs and finished Jobs are in
// suite/kind. Invalid annotations, profiles and missing permissions are in suite/reloader. Its load test and the number of requests
// are in bench.
package comparison
