package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const gpuDriverName = "gpu.nvidia.com"

// A driver of Dynamic Resource Allocation for GPUs that are not there. In its directory are
//
//	devices.json   the devices that it publishes, as they stand in a ResourceSlice; read again when it changes
//	refusal        why it prepares no claim at present, if there is such a file
//	cdi/           a file for each prepared claim, in the format of the Container Device Interface
type gpuDriverServer struct {
	directory string
}

// gpu-driver NODE KUBECONFIG DIRECTORY
func gpuDriver(arguments []string) int {
	if len(arguments) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gpu-driver NODE KUBECONFIG DIRECTORY")
		return 2
	}
	driver := &gpuDriverServer{directory: arguments[2]}
	if err := driver.run(context.Background(), arguments[0], arguments[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-driver:", err)
		return 1
	}
	return 0
}

func (driver *gpuDriverServer) run(ctx context.Context, node string, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	own := filepath.Join(kubeletplugin.KubeletPluginsDir, gpuDriverName)
	for _, path := range []string{own, kubeletplugin.KubeletRegistryDir, driver.path("cdi")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	helper, err := kubeletplugin.Start(ctx, driver, kubeletplugin.DriverName(gpuDriverName),
		kubeletplugin.NodeName(node), kubeletplugin.KubeClient(client), kubeletplugin.PluginDataDirectoryPath(own))
	if err != nil {
		return err
	}
	for last := ""; ; time.Sleep(100 * time.Millisecond) {
		text, err := os.ReadFile(driver.path("devices.json"))
		if err != nil || string(text) == last {
			continue
		}
		devices, err := driver.devices()
		if err != nil {
			fmt.Println("again:", err)
			continue
		}
		pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: devices}}}
		resources := resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: pool}}
		if err := helper.PublishResources(ctx, resources); err != nil {
			return err
		}
		last = string(text)
		fmt.Println("published", len(devices), "devices")
	}
}

func (driver *gpuDriverServer) path(name string) string {
	return filepath.Join(driver.directory, name)
}

func (driver *gpuDriverServer) devices() (devices []resource.Device, err error) {
	text, err := os.ReadFile(driver.path("devices.json"))
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &devices)
	return devices, err
}

func (driver *gpuDriverServer) PrepareResourceClaims(
	_ context.Context, claims []*resource.ResourceClaim,
) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := driver.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

func (driver *gpuDriverServer) prepare(claim *resource.ResourceClaim) ([]kubeletplugin.Device, error) {
	if refusal, err := os.ReadFile(driver.path("refusal")); err == nil {
		return nil, errors.New(strings.TrimSpace(string(refusal)))
	}
	published, err := driver.devices()
	if err != nil {
		return nil, err
	}
	uuids := map[string]string{}
	for _, device := range published {
		if uuid := device.Attributes["uuid"].StringValue; uuid != nil {
			uuids[device.Name] = *uuid
		}
	}
	var prepared []kubeletplugin.Device
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != gpuDriverName {
			continue
		}
		names = append(names, uuids[result.Device])
		prepared = append(prepared, kubeletplugin.Device{
			Requests:     []string{result.Request},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			CDIDeviceIDs: []string{"tests.corral/gpu=" + string(claim.UID)},
		})
	}
	return prepared, driver.writeEdits(claim, names)
}

// The variables that a container with this claim gets. NVIDIA's driver says void, too, so that nothing else adds GPUs.
func (driver *gpuDriverServer) writeEdits(claim *resource.ResourceClaim, uuids []string) error {
	pods := []string{}
	for _, user := range claim.Status.ReservedFor {
		pods = append(pods, claim.Namespace+"/"+user.Name)
	}
	variables := []string{"NVIDIA_VISIBLE_DEVICES=void", "PREPARED_GPUS=" + strings.Join(uuids, ",")}
	device := map[string]any{"name": string(claim.UID), "containerEdits": map[string]any{"env": variables}}
	text, err := json.Marshal(map[string]any{
		"cdiVersion":  "0.6.0",
		"kind":        "tests.corral/gpu",
		"annotations": map[string]string{"pods": strings.Join(pods, ",")},
		"devices":     []any{device},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(driver.editsOf(claim.UID), text, 0o644)
}

func (driver *gpuDriverServer) editsOf(claim types.UID) string {
	return filepath.Join(driver.path("cdi"), string(claim)+".json")
}

func (driver *gpuDriverServer) UnprepareResourceClaims(
	_ context.Context, claims []kubeletplugin.NamespacedObject,
) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		err := os.Remove(driver.editsOf(claim.UID))
		if os.IsNotExist(err) {
			err = nil
		}
		results[claim.UID] = err
	}
	return results, nil
}

func (driver *gpuDriverServer) HandleError(_ context.Context, err error, message string) {
	// Fields of features that are switched off, and an API server that does not answer: it is tried again.
	fmt.Println(message, err)
}
