package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const gpuResource = "nvidia.com/gpu"

// A device plugin for GPUs that are not there: it counts them, names them to containers as NVIDIA's plugin does, and
// reports those as unhealthy whose indexes stand in a file.
type gpuServer struct {
	api.UnimplementedDevicePluginServer
	count         int
	unhealthyFile string
}

// gpu-plugin COUNT UNHEALTHY_FILE
func gpuPlugin(arguments []string) int {
	count, err := strconv.Atoi(strings.Join(arguments[:1], ""))
	if err != nil || len(arguments) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gpu-plugin COUNT UNHEALTHY_FILE")
		return 2
	}
	plugin := &gpuServer{count: count, unhealthyFile: arguments[1]}
	// A kubelet that starts forgets its plugins and removes their sockets: each start needs a registration of its own.
	for {
		if err := plugin.serve(); err != nil {
			fmt.Println("again:", err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// Registers at the kubelet and serves it until it is another one.
func (plugin *gpuServer) serve() error {
	kubelet, err := os.Stat(api.KubeletSocket)
	if err != nil {
		return err
	}
	socket := filepath.Join(api.DevicePluginPath, "gpu.sock")
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, plugin)
	go server.Serve(listener)
	defer server.Stop()
	if err := register(filepath.Base(socket)); err != nil {
		return err
	}
	fmt.Println("registered", plugin.count, gpuResource)
	for {
		time.Sleep(200 * time.Millisecond)
		now, err := os.Stat(api.KubeletSocket)
		if err != nil || !os.SameFile(kubelet, now) || !now.ModTime().Equal(kubelet.ModTime()) {
			return fmt.Errorf("the kubelet was restarted")
		}
		if _, err := os.Stat(socket); err != nil {
			return fmt.Errorf("the socket was removed")
		}
	}
}

func register(endpoint string) error {
	connection, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	deadline, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	request := &api.RegisterRequest{Version: api.Version, Endpoint: endpoint, ResourceName: gpuResource}
	_, err = api.NewRegistrationClient(connection).Register(deadline, request)
	return err
}

func (plugin *gpuServer) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (plugin *gpuServer) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	for last := ""; ; {
		unhealthy, _ := os.ReadFile(plugin.unhealthyFile)
		if last == "" || last != "read:"+string(unhealthy) {
			if err := stream.Send(plugin.devices(string(unhealthy))); err != nil {
				return err
			}
			last = "read:" + string(unhealthy)
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (plugin *gpuServer) devices(unhealthy string) *api.ListAndWatchResponse {
	answer := &api.ListAndWatchResponse{}
	for index := range plugin.count {
		device := &api.Device{ID: strconv.Itoa(index), Health: api.Healthy}
		for _, bad := range strings.Fields(unhealthy) {
			if bad == device.ID {
				device.Health = api.Unhealthy
			}
		}
		answer.Devices = append(answer.Devices, device)
	}
	return answer
}

func (plugin *gpuServer) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		indexes := append([]string{}, container.DevicesIds...)
		sort.Strings(indexes)
		names := strings.Join(indexes, ",")
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": names, "CUDA_VISIBLE_DEVICES": names},
		})
	}
	return answer, nil
}
