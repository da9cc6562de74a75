// Package kind tests what a reload does to each kind of workload beyond the stamp of its pod template: a Deployment
// that is paused for a period, a Job of a CronJob, a Job that is created again, an Argo Rollout. It also tests what
// reloads workloads beside ConfigMaps and Secrets: a SecretProviderClass.
package kind
