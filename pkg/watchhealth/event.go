package watchhealth

// The reasons of the Events about watches, on the installation's own Deployment.
const (
	EventFailing   = "WatchFailing"
	EventRecovered = "WatchRecovered"

	EventPermissionsMissing = "PermissionsMissing"
	EventPermissionsGranted = "PermissionsGranted"
)
