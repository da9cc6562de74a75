package options

import "strings"

// instead returns what to write for a flag that a version of Reloader has and this program does not; empty for other names.
func instead(flag string) string {
	switch flag {
	case "alert-on-reload", "alert-sink", "alert-webhook-url", "alert-additional-info":
		return "set the environment variable " + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	case "alert-proxy":
		return "set the environment variable ALERT_WEBHOOK_PROXY"
	case "alert-structured":
		return "the payload of ALERT_SINK=webhook is always JSON; remove the flag"
	case "watch-namespace":
		return "write --namespaces"
	default:
		return ""
	}
}
