// Package reloader holds end-to-end tests of what the program has from Stakater's Reloader: its annotations, its flags and variables, and
// its strategies, in an installation and in the place of Reloader's own program. The command clean is tested here, since it removes what
// each strategy has left. They run on a real control plane with the program as shipped.
package reloader
