// One program that holds every part of Kubernetes the tests start: the name it is called by chooses the part.
// One link takes a fraction of the time and of the disk space of seven.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	hollow "k8s.io/kubernetes/cmd/kubemark/app"
)

var servers = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubemark":                hollow.NewHollowNodeCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	switch server := servers[name]; {
	case server != nil:
		os.Exit(cli.Run(server()))
	case name == "kubectl":
		kubectlutil.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()))
	case name == "gpu-plugin":
		os.Exit(gpuPlugin(os.Args[1:]))
	case name == "gpu-driver":
		os.Exit(gpuDriver(os.Args[1:]))
	default:
		fmt.Fprintf(os.Stderr, "%s: not a part of Kubernetes\n", name)
		os.Exit(2)
	}
}
