#include "engine.h"

#if !__has_include(<ode/ode.h>)
#error "the physics engine ODE is missing. Debian, Ubuntu: apt-get install libode-dev. Fedora: dnf install ode-devel. Arch: pacman -S ode."
#else

#include <math.h>
#include <ode/ode.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of contacts of a pair: those of a box on a plane. */
#define MAX_CONTACTS 4
#define WALLS 5
/* Number of steps for which a resting cube still counts as interacting. */
#define LINGER 120

typedef struct {
	dBodyID id;
	dGeomID geom;
	dReal mass;
	/* Whether the body is in contact with a moving one in this step. */
	uint8_t touched;
	/* Number of further steps for which the body counts as moved by the player, directly or through others. */
	uint8_t interacting;
} cube;

struct cubes_world {
	cubes_params p;
	dWorldID world;
	dSpaceID space;
	dJointGroupID contacts;
	/* The floor and invisible walls. They are not in the space, because nearly every cube touches the floor. */
	dGeomID walls[WALLS];
	int count;
	cube *cubes;
};

/* prepare allocates ODE's data of the calling thread. Go may call from any thread. */
static void prepare(void) {
	static int begun;
	if (!begun) {
		begun = 1;
		dInitODE2(0);
	}
	dAllocateODEDataForThread(dAllocateMaskAll);
}

static void make_cube(cubes_world *w, int i, double size, double x, double y, double z) {
	cube *c = &w->cubes[i];
	dMass mass;
	c->id = dBodyCreate(w->world);
	dMassSetBox(&mass, w->p.density, size, size, size);
	dBodySetMass(c->id, &mass);
	dBodySetPosition(c->id, x, y, z);
	dBodySetData(c->id, c);
	c->mass = mass.mass;
	c->geom = dCreateBox(w->space, size, size, size);
	dGeomSetBody(c->geom, c->id);
}

cubes_world *cubes_new(const cubes_params *params) {
	prepare();
	cubes_world *w = calloc(1, sizeof *w);
	if (w == NULL) return NULL;
	w->p = *params;
	int side = (int)w->p.side;
	w->count = 1 + side * side;
	w->cubes = calloc((size_t)w->count, sizeof *w->cubes);
	if (w->cubes == NULL) {
		free(w);
		return NULL;
	}
	w->world = dWorldCreate();
	w->space = dSweepAndPruneSpaceCreate(0, dSAP_AXES_XYZ);
	w->contacts = dJointGroupCreate(0);

	dWorldSetGravity(w->world, 0, 0, -w->p.gravity);
	/* Soft constraints, which separate overlapping bodies slowly: rounded positions overlap slightly. */
	dWorldSetERP(w->world, 0.2);
	dWorldSetCFM(w->world, 1e-3);
	dWorldSetContactMaxCorrectingVel(w->world, 2);
	dWorldSetContactSurfaceLayer(w->world, 0.005);
	dWorldSetQuickStepNumIterations(w->world, 16);
	dWorldSetAutoDisableFlag(w->world, 1);
	dWorldSetAutoDisableLinearThreshold(w->world, 0.1);
	dWorldSetAutoDisableAngularThreshold(w->world, 0.1);
	dWorldSetAutoDisableSteps(w->world, 16);
	dWorldSetAutoDisableTime(w->world, 0);
	dWorldSetLinearDamping(w->world, 0.002);
	dWorldSetAngularDamping(w->world, 0.01);
	dWorldSetMaxAngularSpeed(w->world, w->p.max_speed);

	w->walls[0] = dCreatePlane(0, 0, 0, 1, 0);
	w->walls[1] = dCreatePlane(0, 1, 0, 0, -w->p.bound);
	w->walls[2] = dCreatePlane(0, -1, 0, 0, -w->p.bound);
	w->walls[3] = dCreatePlane(0, 0, 1, 0, -w->p.bound);
	w->walls[4] = dCreatePlane(0, 0, -1, 0, -w->p.bound);

	make_cube(w, 0, w->p.player_size, 0, 0, 10);
	w->cubes[0].interacting = LINGER;
	dBodySetAutoDisableFlag(w->cubes[0].id, 0);
	double first = -(side - 1) * w->p.spacing / 2;
	for (int i = 0; i < side * side; i++) {
		make_cube(w, 1 + i, w->p.size, first + i % side * w->p.spacing, first + i / side * w->p.spacing, w->p.size / 2);
		dBodyDisable(w->cubes[1 + i].id);
	}
	return w;
}

void cubes_free(cubes_world *w) {
	prepare();
	dJointGroupDestroy(w->contacts);
	for (int i = 0; i < w->count; i++) dGeomDestroy(w->cubes[i].geom);
	for (int i = 0; i < WALLS; i++) dGeomDestroy(w->walls[i]);
	dSpaceDestroy(w->space);
	dWorldDestroy(w->world);
	free(w->cubes);
	free(w);
}

/* collide creates the contacts between two geoms and returns their number. */
static int collide(cubes_world *w, dGeomID a, dGeomID b) {
	dContact contacts[MAX_CONTACTS];
	int n = dCollide(a, b, MAX_CONTACTS, &contacts[0].geom, sizeof contacts[0]);
	for (int i = 0; i < n; i++) {
		dSurfaceParameters *s = &contacts[i].surface;
		memset(s, 0, sizeof *s);
		s->mode = dContactBounce | dContactApprox1 | dContactSoftERP | dContactSoftCFM;
		s->mu = w->p.friction;
		s->bounce = w->p.bounce;
		s->bounce_vel = 0.5;
		s->soft_erp = 0.2;
		s->soft_cfm = 1e-3;
		dJointAttach(dJointCreateContact(w->world, w->contacts, &contacts[i]), dGeomGetBody(a), dGeomGetBody(b));
	}
	return n;
}

static void near(void *data, dGeomID a, dGeomID b) {
	cubes_world *w = data;
	dBodyID p = dGeomGetBody(a), q = dGeomGetBody(b);
	if (!dBodyIsEnabled(p) && !dBodyIsEnabled(q)) return;
	if (collide(w, a, b) == 0) return;
	cube *c = dBodyGetData(p), *d = dBodyGetData(q);
	c->touched = d->touched = 1;
	if (c->interacting || d->interacting) c->interacting = d->interacting = LINGER;
}

/* move applies the force of the direction keys above the center of the player, so that it rolls. */
static void move(cubes_world *w, uint32_t input) {
	cube *player = &w->cubes[0];
	double x = !!(input & CUBES_RIGHT) - !!(input & CUBES_LEFT);
	double y = !!(input & CUBES_UP) - !!(input & CUBES_DOWN);
	double length = sqrt(x * x + y * y);
	const dReal *v = dBodyGetLinearVel(player->id), *at = dBodyGetPosition(player->id);
	dBodyAddForce(player->id, -player->mass * w->p.drag * v[0], -player->mass * w->p.drag * v[1], 0);
	if (length == 0) return;
	double force = player->mass * w->p.roll / length;
	dBodyAddForceAtPos(player->id, force * x, force * y, 0, at[0], at[1], at[2] + w->p.player_size / 4);
}

/* push makes the player hover and blows other cubes away from the point below it. */
static void push(cubes_world *w) {
	cube *player = &w->cubes[0];
	const dReal *at = dBodyGetPosition(player->id), *v = dBodyGetLinearVel(player->id);
	double lift = w->p.gravity + 40 * (w->p.hover - at[2]) - 8 * v[2];
	if (lift > 0) dBodyAddForce(player->id, 0, 0, player->mass * lift);
	const dReal *turn = dBodyGetAngularVel(player->id);
	dBodyAddTorque(player->id, -player->mass * turn[0], -player->mass * turn[1], -player->mass * turn[2]);
	for (int i = 1; i < w->count; i++) {
		cube *c = &w->cubes[i];
		const dReal *p = dBodyGetPosition(c->id);
		double d[3] = {p[0] - at[0], p[1] - at[1], p[2]};
		double distance = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
		if (distance >= w->p.push_radius || distance < 1e-3) continue;
		double force = c->mass * w->p.push * (1 - distance / w->p.push_radius) / distance;
		if (!dBodyIsEnabled(c->id)) dBodyEnable(c->id);
		dBodyAddForce(c->id, force * d[0], force * d[1], force * d[2]);
		c->interacting = LINGER;
	}
}

/* pull accelerates cubes near the player towards it. */
static void pull(cubes_world *w) {
	const dReal *at = dBodyGetPosition(w->cubes[0].id);
	for (int i = 1; i < w->count; i++) {
		cube *c = &w->cubes[i];
		const dReal *p = dBodyGetPosition(c->id);
		double d[3] = {at[0] - p[0], at[1] - p[1], at[2] - p[2]};
		double distance = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
		if (distance >= w->p.pull_radius || distance < 1e-3) continue;
		double force = c->mass * w->p.pull / distance;
		if (!dBodyIsEnabled(c->id)) dBodyEnable(c->id);
		dBodyAddForce(c->id, force * d[0], force * d[1], force * d[2]);
		c->interacting = LINGER;
	}
}

static double within(double v, double lo, double hi) { return v < lo ? lo : v > hi ? hi : v; }

/* confine limits the state of a body to its bounds. */
static void confine(cubes_world *w, cube *c) {
	const dReal *p = dBodyGetPosition(c->id), *v = dBodyGetLinearVel(c->id), *a = dBodyGetAngularVel(c->id);
	double b = w->p.bound + 0.9, s = w->p.max_speed;
	double q[3] = {within(p[0], -b, b), within(p[1], -b, b), within(p[2], 0, b)};
	if (q[0] != p[0] || q[1] != p[1] || q[2] != p[2]) dBodySetPosition(c->id, q[0], q[1], q[2]);
	double u[3] = {within(v[0], -s, s), within(v[1], -s, s), within(v[2], -s, s)};
	if (u[0] != v[0] || u[1] != v[1] || u[2] != v[2]) dBodySetLinearVel(c->id, u[0], u[1], u[2]);
	double t[3] = {within(a[0], -s, s), within(a[1], -s, s), within(a[2], -s, s)};
	if (t[0] != a[0] || t[1] != a[1] || t[2] != a[2]) dBodySetAngularVel(c->id, t[0], t[1], t[2]);
}

void cubes_step(cubes_world *w, uint32_t input, uint32_t seed) {
	prepare();
	dRandSetSeed(seed); /* the solver randomizes the order of constraints */
	move(w, input);
	if (input & CUBES_PUSH) push(w);
	if (input & CUBES_PULL) pull(w);
	for (int i = 0; i < w->count; i++) w->cubes[i].touched = 0;
	dSpaceCollide(w->space, w, near);
	for (int i = 0; i < w->count; i++) {
		cube *c = &w->cubes[i];
		/* A resting body that is touched moves in this step, and needs contacts not to sink into the floor. */
		if (!dBodyIsEnabled(c->id) && !c->touched) continue;
		for (int k = 0; k < WALLS; k++) collide(w, c->geom, w->walls[k]);
	}
	dWorldQuickStep(w->world, w->p.step);
	dJointGroupEmpty(w->contacts);
	for (int i = 0; i < w->count; i++) {
		cube *c = &w->cubes[i];
		if (dBodyIsEnabled(c->id)) confine(w, c);
		else if (c->interacting) c->interacting--;
	}
}

static void copy(double *to, const dReal *from) {
	for (int k = 0; k < 3; k++) to[k] = from[k];
}

void cubes_get(cubes_world *w, cubes_body *bodies) {
	for (int i = 0; i < w->count; i++) {
		cube *c = &w->cubes[i];
		cubes_body *b = &bodies[i];
		const dReal *q = dBodyGetQuaternion(c->id);
		copy(b->position, dBodyGetPosition(c->id));
		b->orientation[0] = q[1], b->orientation[1] = q[2], b->orientation[2] = q[3], b->orientation[3] = q[0];
		b->moving = (uint32_t)dBodyIsEnabled(c->id);
		b->interacting = c->interacting > 0;
		if (b->moving) {
			copy(b->linear, dBodyGetLinearVel(c->id));
			copy(b->angular, dBodyGetAngularVel(c->id));
		} else {
			memset(b->linear, 0, sizeof b->linear);
			memset(b->angular, 0, sizeof b->angular);
		}
	}
}

void cubes_round(cubes_world *w, int index, const cubes_body *b) {
	cube *c = &w->cubes[index];
	dQuaternion q = {b->orientation[3], b->orientation[0], b->orientation[1], b->orientation[2]};
	dBodySetPosition(c->id, b->position[0], b->position[1], b->position[2]);
	dBodySetQuaternion(c->id, q);
	dBodySetLinearVel(c->id, b->linear[0], b->linear[1], b->linear[2]);
	dBodySetAngularVel(c->id, b->angular[0], b->angular[1], b->angular[2]);
}

void cubes_set(cubes_world *w, int index, const cubes_body *b) {
	cube *c = &w->cubes[index];
	cubes_round(w, index, b);
	c->interacting = index == 0 || b->interacting ? LINGER : 0;
	if (b->moving) {
		if (!dBodyIsEnabled(c->id)) dBodyEnable(c->id);
	} else {
		dBodyDisable(c->id);
	}
}

#endif
