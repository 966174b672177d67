// Checks that the names of the library do not collide with those of engines: this file does not compile if
// one of them is ambiguous. The stubs have the names of types of Unity and of Godot.
using System;
using System.Collections;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Godot;
using Unity.Entities;
using Unity.Netcode;
using UnityEngine;
using Uplink;

static class Program
{
    static readonly Type[] all =
    {
        typeof(UplinkEventType), typeof(UplinkEvent), typeof(Stats), typeof(Pace), typeof(ClientConfig), typeof(LinkConditions), typeof(WorldStatus), typeof(HandoverStatus),
        typeof(AnswerStatus), typeof(StreamStatus), typeof(UplinkLogLevel), typeof(UplinkClient),
        typeof(Loop<,>), typeof(Objects), typeof(ObjectClass), typeof(RowField), typeof(Interpolation), typeof(InterpolatorConfig),
        typeof(InterpolatorStats), typeof(Vector3d), typeof(Quaterniond), typeof(ObjectPose), typeof(Angles), typeof(Numbers),
        typeof(Sample), typeof(ObjectType), typeof(SnapshotDecoder), typeof(AreaDecoder), typeof(Interpolator), typeof(Smoothing),
        typeof(Smoother), typeof(PredictionStats), typeof(Predictor<,>), typeof(ServerClock), typeof(StateConfig), typeof(StateUpdate),
        typeof(StateObject), typeof(PlayerInput), typeof(StateWorld), typeof(Kind), typeof(Codec), typeof(UplinkError),
        typeof(UplinkException), typeof(Field), typeof(Handle), typeof(Schema), typeof(Frame), typeof(RpcEncoder), typeof(Call),
        typeof(RpcDecoder), typeof(Ticks), typeof(ClientWorld), typeof(SnapshotWorld)
    };

    static int Main()
    {
        foreach (Type t in typeof(Schema).Assembly.GetTypes())
        {
            if (t.Namespace != "Uplink" || !t.IsPublic || all.Contains(t)) continue;
            System.Console.WriteLine(t.Name + " is not in this test");
            return 1;
        }
        System.Console.WriteLine(all.Length + " names beside those of engines");
        return 0;
    }
}

namespace AOT
{
    public class MonoPInvokeCallbackAttribute : Attribute
    {
        public MonoPInvokeCallbackAttribute(Type type) { }
    }
}

namespace UnityEngine
{
    public class AccelerationEvent { } public class Animation { } public class AnimationClip { } public class AnimationCurve { }
    public class AnimationEvent { } public class AnimationState { } public class Animator { } public class AnimatorStateInfo { }
    public class Application { } public class ArticulationBody { } public class AssetBundle { } public class AsyncOperation { }
    public class AudioClip { } public class AudioListener { } public class AudioSource { } public class Avatar { } public class AvatarMask { }
    public class Awaitable { } public class Behaviour { } public class BlendWeights { } public class BoneWeight { } public class Bounds { }
    public class BoundsInt { } public class BoxCollider { } public class BuildCompression { } public class Caching { } public class Camera { }
    public class CanvasGroup { } public class Canvas { } public class CapsuleCollider { } public class CharacterController { }
    public class CharacterInfo { } public class Cloth { } public class Collider { } public class Collider2D { } public class Collision { }
    public class Collision2D { } public class Color { } public class Color32 { } public class ColorSpace { } public class ColorUtility { }
    public class CombineInstance { } public class Compass { } public class Component { } public class ComputeBuffer { } public class ComputeShader { }
    public class ConfigurableJoint { } public class ContactPoint { } public class ContextMenu { } public class ControllerColliderHit { }
    public class Coroutine { } public class CrashReport { } public class Cubemap { } public class Cursor { } public class Debug { }
    public class Device { } public class DeviceType { } public class Display { } public class Effector2D { } public class Event { }
    public class EventModifiers { } public class EventType { } public class ExitGUIException { } public class FilterMode { }
    public class FixedJoint { } public class Flare { } public class FontStyle { } public class Font { } public class Force { }
    public class ForceMode { } public class FrameTiming { } public class FrameTimingManager { } public class FrustumPlanes { }
    public class GameObject { } public class GeometryUtility { } public class Gizmos { } public class GL { } public class Gradient { }
    public class Graphics { } public class GraphicsBuffer { } public class Grid { } public class GUI { } public class GUIContent { }
    public class GUILayout { } public class GUIStyle { } public class Gyroscope { } public class Handheld { } public class Hash128 { }
    public class HeaderAttribute { } public class HideFlags { } public class HingeJoint { } public class HumanBone { } public class Input { }
    public class Interaction { } public class IMGUI { } public class JointDrive { } public class JointLimits { } public class JsonUtility { }
    public class Keyframe { } public class KeyCode { } public class LayerMask { } public class LensFlare { } public class Light { }
    public class LightProbes { } public class LineRenderer { } public class LOD { } public class LODGroup { } public class LocationInfo { }
    public class LocationService { } public class Logger { } public class LogType { } public class Mathf { } public class Matrix4x4 { }
    public class Mesh { } public class MeshCollider { } public class MeshFilter { } public class MeshRenderer { } public class Microphone { }
    public class MonoBehaviour { } public class Motion { } public class NetworkReachability { } public class Object { }
    public class ParticleSystem { } public class PhysicMaterial { } public class Physics { } public class Physics2D { } public class PhysicsScene { }
    public class Ping { } public class Plane { } public class PlayerPrefs { } public class Playable { } public class Pose { }
    public class PrimitiveType { } public class Profiler { } public class Projector { } public class PropertyAttribute { }
    public class QualitySettings { } public class Quaternion { } public class Random { } public class Range { } public class RangeAttribute { }
    public class RangeInt { } public class Ray { } public class Ray2D { } public class RaycastHit { } public class Rect { } public class RectInt { }
    public class RectOffset { } public class RectTransform { } public class ReflectionProbe { } public class Renderer { }
    public class RenderTexture { } public class Resolution { } public class ResourceRequest { } public class Resources { } public class Rigidbody { }
    public class Rigidbody2D { } public class RigidbodyInterpolation { } public class RigidbodyInterpolation2D { } public class RuntimePlatform { }
    public class Scene { } public class Screen { } public class ScreenCapture { } public class ScriptableObject { } public class Security { }
    public class SerializeField { } public class Shader { } public class SkinnedMeshRenderer { } public class Skybox { } public class Social { }
    public class SoftJointLimit { } public class Space { } public class SphereCollider { } public class SpringJoint { } public class Sprite { }
    public class SpriteRenderer { } public class StateMachineBehaviour { } public class StaticBatchingUtility { } public class Statistics { }
    public class SystemInfo { } public class SystemLanguage { } public class Terrain { } public class TerrainData { } public class TextAsset { }
    public class TextMesh { } public class Texture { } public class Texture2D { } public class Texture3D { } public class ThreadPriority { }
    public class Tile { } public class Tilemap { } public class Time { } public class Touch { } public class TouchPhase { }
    public class TouchScreenKeyboard { } public class TrailRenderer { } public class Transform { } public class Tree { } public class UIVertex { }
    public class Vector2 { } public class Vector2Int { } public class Vector3 { } public class Vector3Int { } public class Vector4 { }
    public class VideoPlayer { } public class WaitForEndOfFrame { } public class WaitForFixedUpdate { } public class WaitForSeconds { }
    public class WheelCollider { } public class WindZone { } public class WWW { } public class WWWForm { } public class YieldInstruction { }
}

namespace Unity.Entities
{
    public class Entity { } public class EntityManager { } public class World { } public class SystemBase { } public class ComponentSystem { }
}

namespace Unity.Netcode
{
    public class NetworkManager { } public class NetworkObject { } public class NetworkVariable { } public class RpcParams { }
}

namespace Godot
{
    public class Aabb { } public class AcceptDialog { } public class Animation { } public class AnimationPlayer { } public class Area2D { }
    public class Area3D { } public class Array { } public class AudioStream { } public class Basis { } public class BaseButton { }
    public class Bone2D { } public class BoneAttachment3D { } public class Button { } public class Callable { } public class Camera2D { }
    public class Camera3D { } public class CanvasItem { } public class CharacterBody2D { } public class CharacterBody3D { } public class ClassDB { }
    public class CollisionObject3D { } public class CollisionShape3D { } public class Color { } public class Colors { }
    public class CompressedTexture2D { } public class Container { } public class Control { } public class Corner { } public class Crypto { }
    public class CryptoKey { } public class Curve { } public class Curve3D { } public class Decal { } public class Dictionary { }
    public class DirAccess { } public class DisplayServer { } public class Engine { } public class ENetConnection { }
    public class ENetMultiplayerPeer { } public class Error { } public class Environment { } public class EulerOrder { } public class Expression { }
    public class ExportAttribute { } public class FileAccess { } public class Font { } public class GD { } public class Geometry3D { }
    public class GodotObject { } public class Gradient { } public class GraphEdit { } public class GraphNode { } public class GridMap { }
    public class HashingContext { } public class HBoxContainer { } public class HmacContext { } public class HttpClient { }
    public class HttpRequest { } public class Image { } public class Input { } public class InputEvent { } public class InputMap { }
    public class IP { } public class Joint3D { } public class Json { } public class JsonRpc { } public class Key { } public class Label { }
    public class Light3D { } public class Line2D { } public class LineEdit { } public class Lightmapper { } public class Marker2D { }
    public class Marker3D { } public class Marshalls { } public class Material { } public class Mathf { } public class Mesh { }
    public class MeshInstance3D { } public class MethodFlags { } public class MouseButton { } public class MultiMesh { }
    public class MultiplayerApi { } public class MultiplayerPeer { } public class MultiplayerSynchronizer { } public class Mutex { }
    public class NavigationAgent3D { } public class Node { } public class Node2D { } public class Node3D { } public class NodePath { }
    public class Noise { } public class OfflineMultiplayerPeer { } public class OS { } public class PackedScene { } public class PacketPeer { }
    public class PacketPeerUdp { } public class Panel { } public class Path3D { } public class Performance { } public class PhysicsBody3D { }
    public class PhysicsServer3D { } public class Plane { } public class Popup { } public class ProgressBar { } public class Projection { }
    public class PropertyHint { } public class Quaternion { } public class Range { } public class RandomNumberGenerator { } public class RayCast3D { }
    public class Rect2 { } public class Rect2I { } public class RefCounted { } public class Resource { } public class ResourceLoader { }
    public class Rid { } public class RigidBody2D { } public class RigidBody3D { } public class RpcAttribute { } public class Script { }
    public class ScrollContainer { } public class Semaphore { } public class Shader { } public class Shape2D { } public class Shape3D { }
    public class Side { } public class Signal { } public class SignalAttribute { } public class Skeleton3D { } public class Skin { }
    public class Sky { } public class Slider { } public class Sprite2D { } public class Sprite3D { } public class StaticBody3D { }
    public class StreamPeer { } public class StreamPeerTcp { } public class StringName { } public class StyleBox { } public class SubViewport { }
    public class SurfaceTool { } public class TabContainer { } public class TcpServer { } public class TextEdit { } public class Texture { }
    public class Texture2D { } public class Theme { } public class Thread { } public class TileMap { } public class Time { } public class Timer { }
    public class ToolAttribute { } public class Transform2D { } public class Transform3D { } public class Translation { } public class Tree { }
    public class TreeItem { } public class Tween { } public class UdpServer { } public class UndoRedo { } public class Variant { }
    public class VBoxContainer { } public class Vector2 { } public class Vector2I { } public class Vector3 { } public class Vector3I { }
    public class Vector4 { } public class VehicleBody3D { } public class VideoStream { } public class Viewport { } public class VisualShader { }
    public class WeakRef { } public class WebSocketPeer { } public class Window { } public class WorkerThreadPool { } public class World2D { }
    public class World3D { } public class WorldEnvironment { } public class XmlParser { } public class ZipPacker { }
}
