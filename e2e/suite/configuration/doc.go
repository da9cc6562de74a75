// Package configuration holds the end-to-end tests of the structured configuration: it changes while the program runs on
// a real control plane, with the permissions as shipped and as documented, and no replica is restarted.
package configuration
